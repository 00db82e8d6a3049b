"""How many inducing points a stream can afford."""

import math
import pickle
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from streamgp.checks import check_count, check_positive
from streamgp.errors import OptionError, ValueRangeError
from streamgp.streaming.learner import StreamLearner
from streamgp.streaming.settings import StreamSettings

__all__ = ["RowCost", "measure_row", "most_within", "points_within"]

# Numbers of points that are tried, and single rows that are timed with each.
_TRIED = (25, 50, 100, 200, 400, 800)
_NUM_TIMED = 25


class RowCost(NamedTuple):
    """What a row of a stream takes.

    Attributes:
        milliseconds: To predict and to learn it, without refits.
        megabytes: Of all that is kept once the buffer is full.
    """

    milliseconds: float
    megabytes: float


def points_within(
    *,
    num_columns: int,
    milliseconds: float | None = None,
    megabytes: float | None = None,
    half_life: float | str | None = "auto",
) -> int:
    """Find how many inducing points a stream may have so that its rows stay within a budget, for `max_inducing`.

    Time is measured on this machine, as busy as it is now, with short streams of random numbers that a regressor
    learns: a second, or half a minute for a large budget. Streams themselves never look at the clock, so that they
    learn the same from the same rows wherever they run. A classifier of many classes keeps a belief for each of them,
    and takes more.

    ```python
    most = sg.points_within(num_columns=8, milliseconds=20.0, megabytes=4.0)
    model = sg.StreamingGPRegressor(max_inducing=most)
    ```

    Args:
        num_columns: Number of columns of the inputs.
        milliseconds: To predict and to learn one row, without refits.
        megabytes: Of all that is kept, the buffer of default size included.
        half_life: As in `StreamingGPRegressor`.

    Returns:
        The most points, at most 800.
    """
    num_columns = check_count(num_columns, "num_columns")
    if milliseconds is None and megabytes is None:
        raise OptionError("A budget is needed. Pass milliseconds for a row, megabytes in all, or both.")
    limits = RowCost(
        math.inf if milliseconds is None else check_positive(milliseconds, "milliseconds"),
        math.inf if megabytes is None else check_positive(megabytes, "megabytes"),
    )
    return most_within(limits, lambda p: measure_row(p, num_columns=num_columns, half_life=half_life))


def measure_row(num_inducing: int, *, num_columns: int, half_life: float | str | None = "auto") -> RowCost:
    """Run a short stream of random numbers with so many inducing points.

    Args:
        num_inducing: Number of points.
        num_columns: Number of columns.
        half_life: As in `StreamSettings`.
    """
    settings = StreamSettings(num_inducing=num_inducing, half_life=half_life, refit="never")
    num_before = max(2 * num_inducing, settings.warmup + 1)
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(num_before + _NUM_TIMED, num_columns, generator=generator, dtype=torch.float64)
    y = torch.sin(6.0 * X).sum(-1)
    learner, _ = StreamLearner(settings).learn(X[:num_before], y[:num_before])
    seconds = []
    for x, target in zip(X[num_before:].split(1), y[num_before:].split(1), strict=True):
        began = time.perf_counter()
        _ = learner.predict(x).mean
        learner, _ = learner.learn(x, target)
        seconds.append(time.perf_counter() - began)
    missing = 8 * (num_columns + 1) * max(0, settings.buffer_size - len(X))
    return RowCost(1e3 * statistics.median(seconds), 1e-6 * (len(pickle.dumps(learner)) + missing))


def most_within(limits: RowCost, cost: Callable[[int], RowCost]) -> int:
    """The largest number of points whose cost is within limits, if it grows with their square from one to the next.

    Args:
        limits: The limits.
        cost: What a number of points costs.
    """
    p, least = _TRIED[0], cost(_TRIED[0])
    if any(one > limit for one, limit in zip(least, limits, strict=True)):
        raise ValueRangeError(
            f"The budget is too small: with {p} inducing points a row takes {least.milliseconds:.2g} ms here, and a "
            f"stream keeps {least.megabytes:.2g} MB. Raise it, or pass a smaller num_inducing to the model."
        )
    for more_points in _TRIED[1:]:
        more = cost(more_points)
        share = min(
            1.0 if after <= limit else (limit - before) / (after - before)
            for limit, before, after in zip(limits, least, more, strict=True)
        )
        if share < 1.0:
            return int(math.sqrt(p**2 + share * (more_points**2 - p**2)))
        p, least = more_points, more
    return p
