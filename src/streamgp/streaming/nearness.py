"""Which inputs are where a stream is now."""

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["is_near"]

# An input moves through its range if its steps from row to row are so small, compared with its deviations from the
# mean; then the latest so many rows tell where it is.
_SMALL_STEP, _NUM_LAST = 0.2, 16


def is_near(
    X: Float[np.ndarray, "n d"], latest: Float[np.ndarray, "r d"], lengths: Float[np.ndarray, " d"]
) -> Bool[np.ndarray, " n"]:
    """Whether inputs are within the range of the latest rows, or not far beyond.

    Columns that move in small steps, such as time, or the one that a table is sorted by, have to be near those of the
    very latest rows: what has changed of late may be of one place.

    Args:
        X: The inputs.
        latest: Inputs of the latest rows, in their order.
        lengths: What is a usual distance in each column.
    """
    lower, upper = latest.min(0), latest.max(0)
    margin = np.maximum(upper - lower, lengths)
    steps, deviations = (np.abs(each).sum(0) for each in (latest[1:] - latest[:-1], latest - latest.mean(0)))
    is_stepping = steps < _SMALL_STEP * deviations
    if is_stepping.any():
        last = latest[-_NUM_LAST:]
        lower, upper = np.where(is_stepping, [last.min(0), last.max(0)], [lower, upper])
        margin = np.where(is_stepping, upper - lower, margin)
    near: np.ndarray = ((lower - margin <= X) & (upper + margin >= X)).all(-1)
    return near
