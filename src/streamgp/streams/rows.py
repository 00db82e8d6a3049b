"""Rows, predicted and learned in order, by compiled functions or by NumPy."""

import math
from typing import Any

import numpy as np
from jaxtyping import Int

from streamgp.streams import compiled, plain
from streamgp.streams.buffer import Buffer
from streamgp.streams.compiling import HAS_NUMBA, announced
from streamgp.streams.kernels import Stationary
from streamgp.streams.observing import Observing
from streamgp.streams.state import Belief, Dynamics, Said

__all__ = ["advance_rows", "learn_rows", "predict_rows"]

_LINE = "streamgp compiles the functions that {} a stream's rows: some seconds, once per machine."
# Functions that were called, and whether with real targets: they are compiled apart for those.
_called: set[tuple[Any, bool]] = set()


def predict_rows(
    inputs: np.ndarray,
    times: Int[np.ndarray, " n"],
    belief: Belief,
    dynamics: Dynamics,
    observing: Observing | None,
    said: Said,
) -> None:
    """Write what is said of rows of these times."""
    module, densities = _functions(dynamics, observing)
    _announcing(module.predict_rows, densities is None, inputs, times, belief, dynamics, densities, said)


def learn_rows(
    buffer: Buffer,
    start: int,
    stop: int,
    belief: Belief,
    dynamics: Dynamics,
    observing: Observing | None,
    *,
    most_points: int,
    said: Said,
    most_open: float = math.inf,
    exchanges: bool = False,
    powers: np.ndarray | None = None,
) -> tuple[int, float]:
    """Learn rows of a buffer in order, and write what was said of them before.

    Returns the row after the last that was learned, and nats that rows left open for want of points.

    With `powers`, `said` holds what was said when rows were asked for, which is judged by these powers.
    """
    module, densities = _functions(dynamics, observing)
    result: tuple[int, float] = _announcing(
        module.learn_rows,
        densities is None,
        buffer.scaled_inputs,
        buffer.scaled_targets,
        buffer.counts,
        buffer.noises,
        buffer.times,
        start,
        stop,
        belief,
        dynamics,
        densities,
        most_points,
        most_open,
        exchanges,
        powers is not None,
        np.ones(stop - start) if powers is None else powers,
        said,
    )
    return result


def advance_rows(num_rows: int, belief: Belief, dynamics: Dynamics) -> None:
    """Move states on by so many rows of which nothing is known."""
    if num_rows:
        plain.advance(num_rows, belief, dynamics)


def _functions(dynamics: Dynamics, observing: Observing | None) -> tuple[Any, Any]:
    """Return the module whose functions know this kernel and likelihood, and the likelihood as they take it."""
    is_known = HAS_NUMBA and isinstance(dynamics.kernel, Stationary)
    if observing is None:
        return (compiled if is_known else plain), None
    densities = observing.compiled if is_known else None
    return (plain, observing) if densities is None else (compiled, densities)


def _announcing(function: Any, is_real: bool, *arguments: Any) -> Any:
    """Call a function, and say so in one line before it is compiled."""
    if (function, is_real) in _called or not HAS_NUMBA:
        return function(*arguments)
    with announced(_LINE.format(function.__name__.removesuffix("_rows"))):
        result = function(*arguments)
    _called.add((function, is_real))
    return result
