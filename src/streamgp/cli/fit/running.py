"""The commands `streamgp fit` and `streamgp predict`."""

import csv
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer

from streamgp.cli.fit.model import TableModel
from streamgp.cli.fit.tables import TableShard, column_names, read_columns
from streamgp.cli.outputs import check_output_paths, write_together
from streamgp.errors import ClusterError, OptionError, ShapeError, UnsupportedError
from streamgp.storage import load, save
from streamgp.training import fit

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
        dask_address: Of a Dask scheduler; None to fit here.
        seed: Of training.
        is_quiet: Print nothing.
    """
    for path in files:
        check_output_paths({"--output": output}, str(path))
    names = features or tuple(name for name in column_names(files[0]) if name != target)
    shards = [TableShard(path, names, target) for path in files]
    began = time.perf_counter()
    with ExitStack() as stack:
        where = _on_dask(dask_address, shards, stack) if dask_address else {"X": shards, "map": map}
        result = fit(
            **where,
            likelihood=None if likelihood == "gaussian" else likelihood,
            num_inducing=num_inducing,
            max_iterations=max_iterations,
            standardize=True if likelihood == "gaussian" else "inputs",
            generator=torch.Generator().manual_seed(seed),
            progress=not is_quiet,
        )
    model = TableModel(result, names, target)
    save(model, output)
    if not is_quiet:
        typer.echo(_report(model, files, time.perf_counter() - began))


def _on_dask(address: str, shards: Sequence[TableShard], stack: ExitStack) -> dict[str, Any]:
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
    return {"X": DaskShards(client, [client.submit(shard, pure=False) for shard in shards])}


def _report(model: TableModel, files: Sequence[Path], seconds: float) -> str:
    """What came out, with the score of the rows that were held out."""
    residual, total, log_density, n = 0.0, 0.0, 0.0, 0
    parts = [TableShard(path, model.features, model.target, is_held_out=True)() for path in files]
    y = np.concatenate([targets for _, targets in parts])
    for X, targets in parts:
        if not len(targets):
            continue
        mean, _ = model.predict(X)
        residual += float(np.square(targets - mean).sum())
        density = model.result.log_predictive_density(torch.from_numpy(X), torch.from_numpy(targets))
        log_density, n = log_density + float(density.sum()), n + len(targets)
    info = model.result.info
    lines = [
        f"{info.num_inducing} inducing points, bound {info.bound:.6g}, {info.num_evaluations} evaluations, "
        f"{seconds:.1f} s: {info.reason}."
    ]
    if n:
        total = float(np.square(y - y.mean()).sum())
        share = f"R² {1.0 - residual / total:.4f}, " if total > 0 else ""
        lines.append(f"Held out, {n} rows: {share}RMSE {np.sqrt(residual / n):.4g}, NLPD {-log_density / n:.4f}.")
    return "\n".join(lines)


def run_predict(model_path: Path, source: Path, *, output: Path) -> None:
    """Predict the target of each row of a file, and write means and standard deviations as CSV.

    Args:
        model_path: What `streamgp fit` wrote.
        source: CSV or Parquet file with the columns of the inputs.
        output: Where predictions go.
    """
    check_output_paths({"--output": output}, str(source))
    model = load(model_path, kind=TableModel)
    X = read_columns(source, model.features)
    if not len(X):
        raise ShapeError(f"{source} has no rows. Name a table with at least one.")
    is_bad = ~np.isfinite(X).all(axis=1)
    if is_bad.any():
        raise OptionError(
            f"{source}: {int(is_bad.sum())} of {len(X)} rows have missing or infinite inputs, the first after "
            f"{int(is_bad.argmax())} good ones. Drop those rows, or impute them."
        )
    mean, deviation = model.predict(X)

    def write(path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([f"{model.target}_mean", f"{model.target}_std"])
            writer.writerows(zip(map(repr, mean.tolist()), map(repr, deviation.tolist()), strict=True))

    write_together({output: write})
