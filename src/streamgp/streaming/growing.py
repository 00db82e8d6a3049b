"""Arrays that grow at the end without being copied each time, shared by values that stay as they are."""

from collections.abc import Sequence
from threading import Lock
from typing import final

import numpy as np

__all__ = ["GrowingArrays"]

# How much room there is for later rows, in units of those there are; and the least.
_ROOM, _LEAST_ROOM = 0.5, 16


@final
class GrowingArrays:
    """Arrays with one first axis, and room for more.

    What was written is never changed. A value that holds the first rows may extend the arrays if it holds all of them:
    then there is nobody who has written to the rest. Where a second branch of a stream goes on from the same value,
    that is not so, and it makes arrays of its own.
    """

    def __init__(self, arrays: Sequence[np.ndarray], later: Sequence[np.ndarray]) -> None:
        """Copy rows, and others behind them."""
        self._lock, self._num_used = Lock(), len(arrays[0])
        size = self._num_used + len(later[0])
        room = size + max(_LEAST_ROOM, int(_ROOM * size))
        self._arrays = [np.empty((room, *each.shape[1:])) for each in arrays]
        for mine, each in zip(self._arrays, arrays, strict=True):
            mine[: self._num_used] = each
        self.extend(self._num_used, later)

    def extend(self, num_rows: int, later: Sequence[np.ndarray]) -> bool:
        """Write rows behind the first ones; returns whether that was possible.

        Args:
            num_rows: How many the first ones are.
            later: The rows.
        """
        stop = num_rows + len(later[0])
        with self._lock:
            if num_rows != self._num_used or stop > len(self._arrays[0]):
                return False
            for mine, each in zip(self._arrays, later, strict=True):
                mine[num_rows:stop] = each
            self._num_used = stop
        return True

    def first(self, num_rows: int) -> list[np.ndarray]:
        """The first rows of each array, as views."""
        return [each[:num_rows] for each in self._arrays]
