"""`streamgp fit`: files of rows become a model."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
import typer

from streamgp.cli.fit.predicting import without_names
from streamgp.cli.outputs import check_output_paths
from streamgp.errors import ClusterError, DatasetError, OptionError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import from_name
from streamgp.streams.classifier import StreamingGPClassifier
from streamgp.streams.regressor import StreamingGPRegressor
from streamgp.streams.sharded import classifier_from_fit, regressor_from_fit
from streamgp.streams.targets import written_differently
from streamgp.tables.files import TableFile
from streamgp.tables.values import to_number
from streamgp.training import fit
from streamgp.training.sharded_fit import classes_of, fit_classes
from streamgp.training.sharding import AbstractShards, MappedShards

__all__ = ["TableShard", "input_names", "run_fit"]

# Beginnings of the names of columns in which pandas keeps the labels of rows.
_INDEX = "__index_level_"
# One row in so many is held out, to score the fit.
_ROWS_OF_HELD_OUT = 10


@final
@dataclass(frozen=True)
class TableShard:
    """A function that loads the inputs and targets of one file.

    Attributes:
        path: The file.
        features: Columns of the inputs.
        target: Column of the targets.
        is_label: Whether targets are labels, read as texts, or numbers.
        is_held_out: Whether to load the rows that are held out, or all others.
    """

    path: Path
    features: tuple[str, ...]
    target: str
    is_label: bool = False
    is_held_out: bool = False

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        """Load it."""
        table = TableFile(self.path)
        X = table.numbers(self.features)
        if not len(X):
            raise DatasetError(f"{self.path} has no rows. Leave the file out.")
        y = table.labels(self.target) if self.is_label else table.numbers((self.target,))[:, 0]
        is_bad = ~np.isfinite(X).all(axis=1) | ((y == "") if self.is_label else ~np.isfinite(y))
        if is_bad.any():
            raise ValueRangeError(
                f"{self.path}: {int(is_bad.sum())} of {len(X)} rows have missing or infinite values, the first "
                f"after {int(is_bad.argmax())} good ones. Drop those rows, or impute them."
            )
        chosen = (np.arange(len(X)) % _ROWS_OF_HELD_OUT == _ROWS_OF_HELD_OUT - 1) == self.is_held_out
        return np.ascontiguousarray(X[chosen]), np.ascontiguousarray(y[chosen])


def input_names(path: Path, target: str, features: Sequence[str] | None) -> tuple[str, ...]:
    """Columns to predict from: those that were asked for, or all of a file but the target."""
    if not features:
        names = tuple(name for name in TableFile(path).names if name != target)
        unnamed = [name for name in names if not name or name.startswith(_INDEX)]
        if unnamed:
            raise OptionError(
                f"{path} has a column named {unnamed[0]!r}, as pandas writes the numbers of rows. Write the table "
                "without it, with index=False, or name the columns to predict from with --features."
            )
        if not names:
            raise OptionError(f"{path} has no column but the target {target!r}. Add columns to predict it from.")
        return names
    repeated = sorted({name for name in features if list(features).count(name) > 1})
    if repeated or target in features:
        what = f"the target {target!r}" if target in features else f"{', '.join(map(repr, repeated))} more than once"
        raise OptionError(f"--features names {what}. Name each column to predict from once, without the target.")
    return tuple(features)


def run_fit(
    files: Sequence[Path],
    *,
    target: str,
    features: tuple[str, ...] | None,
    output: Path,
    likelihood: str,
    num_inducing: int | str,
    max_iterations: int | None,
    is_classes: bool,
    dask_address: str | None,
    seed: int,
    is_quiet: bool,
) -> None:
    """Fit a model to the rows of all files, score it on those held out, and write it.

    Args:
        files: CSV or Parquet files with the same columns; each is loaded when it is needed.
        target: Column to predict.
        features: Columns to predict from; all others by default.
        output: Where the model goes.
        likelihood: Name.
        num_inducing: Number of inducing points, or `"auto"`.
        max_iterations: Most iterations; None for the default.
        is_classes: Whether the target is a label, of which probabilities are learned.
        dask_address: Of a Dask scheduler; None to fit here.
        seed: Of training.
        is_quiet: Print nothing.
    """
    for path in files:
        check_output_paths({"--output": output}, str(path))
    is_gaussian = from_name(likelihood).is_gaussian
    if is_classes and not is_gaussian:
        raise OptionError(f"--classes says what the target is, so that --likelihood {likelihood} must be left out.")
    names = input_names(files[0], target, features)
    tables = [TableShard(path, names, target, is_classes) for path in files]
    began = time.perf_counter()
    options: dict[str, Any] = {
        "num_inducing": num_inducing,
        "max_iterations": max_iterations,
        "generator": torch.Generator().manual_seed(seed),
        "progress": not is_quiet,
    }
    estimator: StreamingGPRegressor | StreamingGPClassifier
    with ExitStack() as stack:
        shards = _on_dask(dask_address, tables, stack) if dask_address else MappedShards(tables, map)
        if is_classes:
            classes = classes_of(shards)
            _check_writing(classes)
            results = fit_classes(shards, classes, **options)
            estimator = classifier_from_fit(results, shards, classes=classes)
        else:
            units = True if is_gaussian else "inputs"
            result = fit(shards, likelihood=None if is_gaussian else likelihood, standardize=units, **options)
            results, estimator = (result,), regressor_from_fit(result, shards, likelihood=likelihood)
    estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.target_name_ = target
    estimator.save(output)
    if not is_quiet:
        info = results[0].info
        typer.echo(
            f"{info.num_inducing} inducing points, bound {sum(each.info.bound for each in results):.6g}, "
            f"{info.num_evaluations} evaluations, {time.perf_counter() - began:.1f} s: {info.reason}."
        )
        held_out = [replace(table, is_held_out=True)() for table in tables]
        typer.echo(_score(without_names(estimator), *(np.concatenate(each) for each in zip(*held_out, strict=True))))


def _check_writing(labels: Sequence[str]) -> None:
    """Refuse labels that are the same number, as files of different types write them; say which differ in capitals."""
    for group in written_differently(labels):
        if to_number(group[0]) is not None:
            raise OptionError(
                f"The labels {', '.join(map(repr, group))} are one number, written in different ways. Write it in the "
                "same way in all rows and files."
            )
        typer.echo(f"These are different classes, although only their writing differs: {', '.join(group)}.", err=True)


def _on_dask(address: str, shards: Sequence[TableShard], stack: ExitStack) -> AbstractShards:
    try:
        import distributed

        from streamgp.integrations.dask import DaskShards
    except ImportError as error:
        raise UnsupportedError(
            "--dask needs Dask, which is not installed. Install it with: pip install 'streamgp[dask]'"
        ) from error
    try:
        client = stack.enter_context(distributed.Client(address, timeout=20, set_as_default=False))
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at {address!r} ({error}). Start one with `dask scheduler`, and name it."
        ) from error
    return DaskShards(client, [client.submit(shard, pure=False) for shard in shards])


def _score(estimator: StreamingGPRegressor | StreamingGPClassifier, X: np.ndarray, y: np.ndarray) -> str:
    """Score the predictions of the rows that were held out, in a sentence."""
    if not len(y):
        return "No row was held out: there are fewer than ten in each file."
    density = float(np.mean(estimator.log_predictive_density(X, y)))
    if isinstance(estimator, StreamingGPClassifier):
        share = float(np.mean(estimator.predict(X) == y))
        return f"Held out, {len(y)} rows: accuracy {share:.4f}, NLPD {-density:.4f}."
    residual, total = (float(np.square(y - mean).mean()) for mean in (estimator.predict(X), y.mean()))
    share_of_variance = f"R² {1.0 - residual / total:.4f}, " if total > 0 else ""
    return f"Held out, {len(y)} rows: {share_of_variance}RMSE {np.sqrt(residual):.4g}, NLPD {-density:.4f}."
