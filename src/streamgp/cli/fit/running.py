"""The commands `streamgp fit` and `streamgp predict`."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer

from streamgp.cli.fit.tables import TableShard, input_names, read_columns
from streamgp.cli.outputs import check_output_paths, write_table, write_together
from streamgp.cli.reading.values import to_number
from streamgp.cli.stream.rows import written_differently
from streamgp.errors import ClusterError, OptionError, ShapeError, UnsupportedError
from streamgp.likelihoods import from_name
from streamgp.streaming.classifier import StreamingGPClassifier
from streamgp.streaming.from_fit import classifier_from_fit, regressor_from_fit
from streamgp.streaming.regressor import StreamingGPRegressor
from streamgp.streaming.saving import load_estimator
from streamgp.training import fit
from streamgp.training.sharded_fit import classes_of, fit_classes
from streamgp.training.sharding import AbstractShards, MappedShards

__all__ = ["run_fit", "run_predict"]


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
        typer.echo(_score(_without_names(estimator), *(np.concatenate(each) for each in zip(*held_out, strict=True))))


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
    """How well the rows that were held out are predicted."""
    if not len(y):
        return "No row was held out: there are fewer than ten in each file."
    density = float(np.mean(estimator.log_predictive_density(X, y)))
    if isinstance(estimator, StreamingGPClassifier):
        share = float(np.mean(estimator.predict(X) == y))
        return f"Held out, {len(y)} rows: accuracy {share:.4f}, NLPD {-density:.4f}."
    residual, total = (float(np.square(y - mean).mean()) for mean in (estimator.predict(X), y.mean()))
    share_of_variance = f"R² {1.0 - residual / total:.4f}, " if total > 0 else ""
    return f"Held out, {len(y)} rows: {share_of_variance}RMSE {np.sqrt(residual):.4g}, NLPD {-density:.4f}."


def run_predict(model_path: Path, source: Path, *, output: Path) -> None:
    """Predict the target of each row of a file, and write predictions as CSV.

    Means and standard deviations; of labels, the most probable and the probabilities of all.

    Args:
        model_path: What `streamgp fit` wrote, or any saved estimator that knows the names of its columns.
        source: CSV or Parquet file with the columns of the inputs.
        output: Where predictions go.
    """
    check_output_paths({"--output": output}, str(source))
    model = load_estimator(model_path)
    names: Any = vars(model).get("feature_names_in_")
    if names is None:
        raise UnsupportedError(f"{model_path} does not know the names of its columns. Fit it to a table that has them.")
    X = read_columns(source, names.tolist())
    if not len(X):
        raise ShapeError(f"{source} has no rows. Name a table with at least one.")
    is_bad = ~np.isfinite(X).all(axis=1)
    if is_bad.any():
        raise OptionError(
            f"{source}: {int(is_bad.sum())} of {len(X)} rows have missing or infinite inputs, the first after "
            f"{int(is_bad.argmax())} good ones. Drop those rows, or impute them."
        )
    header, rows = _predictions(_without_names(model), X, str(vars(model).get("target_name_", "target")))

    write_together({output: partial(write_table, header=header, rows=rows)})


def _without_names(estimator: Any) -> Any:
    """A copy for arrays whose columns were read by their names; scikit-learn warns where they have none."""
    other = copy(estimator)
    del other.feature_names_in_
    return other


def _predictions(model: Any, X: np.ndarray, target: str) -> tuple[list[str], list[list[str]]]:
    """A header and rows of predictions."""
    if isinstance(model, StreamingGPClassifier):
        probabilities = model.predict_proba(X)
        labels = [str(label) for label in model.classes_[probabilities.argmax(-1)]]
        header = [target, *(f"{target}_probability_{label}" for label in model.classes_)]
        return header, [[label, *map(repr, row)] for label, row in zip(labels, probabilities.tolist(), strict=True)]
    columns = [each.tolist() for each in model.predict(X, return_std=True)]
    return [f"{target}_mean", f"{target}_std"], [list(map(repr, row)) for row in zip(*columns, strict=True)]
