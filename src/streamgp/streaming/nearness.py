"""Which inputs are where a stream is now."""

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["is_behind", "is_near"]

# An input moves in one direction if the way that it went, up and down, is so little longer than its range; then the
# latest so many rows tell where it is.
_LONGEST_WAY, _NUM_LAST = 1.5, 16


def is_near(
    X: Float[np.ndarray, "n d"], latest: Float[np.ndarray, "r d"], lengths: Float[np.ndarray, " d"]
) -> Bool[np.ndarray, " n"]:
    """Whether inputs are within the range of the latest rows, or not far beyond.

    Columns that move in one direction, such as time, or the one that a table is sorted by, have to be near those of the
    very latest rows: what has changed of late may be of one place.

    Args:
        X: The inputs.
        latest: Inputs of the latest rows, in their order.
        lengths: What is a usual distance in each column.
    """
    lower, upper = np.minimum.reduce(latest), np.maximum.reduce(latest)
    width = upper - lower
    margin = np.maximum(width, lengths)
    steps = np.abs(latest[1:] - latest[:-1])
    is_moving = _is_moving(steps, width)
    if is_moving.any():
        last = latest[-_NUM_LAST:]
        lower, upper = np.where(is_moving, [last.min(0), last.max(0)], [lower, upper])
        # A usual step: at the end of a sorted table, values lie far apart.
        margin = np.where(is_moving, _NUM_LAST * _median(steps), margin)
    near: np.ndarray = ((lower - margin <= X) & (upper + margin >= X)).all(-1)
    return near


def is_behind(X: Float[np.ndarray, "n d"], latest: Float[np.ndarray, "r d"]) -> Bool[np.ndarray, " n"]:
    """Whether inputs are where a stream that moves in one direction was a few rows before its latest one.

    An hour that begins again at midnight is outside of the range of the latest rows, and so it is not behind them.

    Args:
        X: The inputs.
        latest: Inputs of the latest rows, in their order.
    """
    lower, upper = np.minimum.reduce(latest), np.maximum.reduce(latest)
    ways = latest[1:] - latest[:-1]
    steps = np.abs(ways)
    is_moving = _is_moving(steps, upper - lower)
    if not is_moving.any():
        return np.zeros(len(X), dtype=bool)
    ahead = (X - latest[-1]) * np.sign(np.add.reduce(ways))
    behind: np.ndarray = ((ahead < 0.0) & (lower <= X) & (upper >= X) | ~is_moving).all(-1)
    if behind.any():  # by more than rounding; the next row seldom is
        behind &= ((ahead < -0.5 * _median(steps)) | ~is_moving).all(-1)
    return behind


def _is_moving(steps: Float[np.ndarray, "s d"], width: Float[np.ndarray, " d"]) -> Bool[np.ndarray, " d"]:
    """Which columns move in one direction."""
    is_moving: np.ndarray = np.add.reduce(steps) < _LONGEST_WAY * width
    return is_moving


def _median(steps: Float[np.ndarray, "s d"]) -> Float[np.ndarray, " d"]:
    """Of few numbers in each column; NumPy's takes three times as long."""
    n, ordered = len(steps), np.sort(steps, 0)
    median: np.ndarray = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
    return median
