"""Running the units of `benchmarks/streams.py` in processes."""

import pickle
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, NamedTuple

import torch
from stream_data import Stream, load_stream
from stream_methods import AbstractMethod, Scores
from stream_rivals import METHODS
from torch import Tensor

# Rows are scored from the first of these on, so that rivals know the size of their errors, and count from the second.
SCORED_FROM, COUNTED_FROM = 100, 200
NUM_STATE_MEASUREMENTS = 10


class Unit(NamedTuple):
    """One run; `block` is 0 for all rows at once."""

    data: str
    order: str
    block: int
    method: str
    seed: int
    max_rows: int | None


def run_units(units: Iterable[Unit], num_jobs: int) -> Iterator[tuple[Unit, dict[str, Any]]]:
    """Run units in processes, and yield each with its result when it has one."""
    pool = ProcessPoolExecutor(num_jobs, mp_context=get_context("spawn"), initializer=_prepare_process)
    try:
        running = {pool.submit(run_unit, unit): unit for unit in units}
        for future in as_completed(running):
            yield running[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # stopped, it ends with the units that run, not with all


def _prepare_process() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    warnings.filterwarnings("ignore")


def run_unit(unit: Unit) -> dict[str, Any]:
    """Run one unit; what goes wrong is a result, too."""
    try:
        stream = load_stream(unit.data, unit.order, unit.seed, max_rows=unit.max_rows)
        method = METHODS[unit.method](stream.likelihood, unit.seed)
        return _run(method, stream, unit.block or stream.num_rows)
    except Exception:
        return {"error": traceback.format_exc(limit=-3)}


def _run(method: AbstractMethod, stream: Stream, block: int) -> dict[str, Any]:
    n = stream.num_rows
    scores, steps, predicting, num_bytes = [], [], 0.0, 0
    next_measurement = measured_every = max(1, n // NUM_STATE_MEASUREMENTS)
    for start in range(0, n, block):
        X, y = stream.X[start : start + block], stream.y[start : start + block]
        began = time.perf_counter()
        if start >= SCORED_FROM:
            scores.append(method.score(X, y))
        scored = time.perf_counter()
        method.learn(X, y)
        steps.append((time.perf_counter() - scored) / len(y))
        predicting += scored - began
        if start + len(y) >= next_measurement:
            num_bytes = max(num_bytes, len(pickle.dumps(method.state())))
            next_measurement += measured_every
    learning = sum(step * len(y) for step, y in zip(steps, stream.y.split(block), strict=True))
    result = {
        "seconds": learning + predicting,
        "learn_seconds_per_row": learning / n,
        "median_seconds_per_row": sorted(steps)[len(steps) // 2],
        "state_bytes": num_bytes,
    }
    if scores:
        counted = n - COUNTED_FROM
        together = Scores(*(torch.cat(parts)[-counted:] for parts in zip(*scores, strict=True)))
        result |= _metrics("prequential", together, stream.y[-counted:], stream.likelihood)
        result["predict_seconds_per_row"] = predicting / sum(len(each.mean) for each in scores)
    result |= _metrics("held_out", method.score(stream.X_test, stream.y_test), stream.y_test, stream.likelihood)
    return {**result, **method.notes(), "num_rows": n}


def _metrics(name: str, scores: Scores, y: Tensor, likelihood: str) -> dict[str, float]:
    metrics = {
        f"{name}_rmse": float((scores.mean - y).square().mean().sqrt()),
        f"{name}_nlpd": -float(scores.log_density.mean()),
    }
    if likelihood == "bernoulli":
        metrics[f"{name}_accuracy"] = float(((scores.mean > 0.5) == (y > 0.5)).double().mean())
    return metrics
