"""When a stream learns its hyperparameters anew."""

from dataclasses import dataclass, replace
from typing import final

__all__ = ["FEW_ROWS", "Schedule"]

# Numbers of rows after which early refits are due; then doubling, and then as `_LONGEST` says.
_EARLY = (1, 2, 3, 5, 7, 10)
FEW_ROWS = _EARLY[-1]
# Rows between refits at most, once there are many; larger saves time, and follows slow changes later.
_LONGEST = 1000
# Nats a row that a refit must gain for the next one to come as soon; larger refits quiet streams less often.
_SETTLED_NATS = 0.005


@final
@dataclass(frozen=True)
class Schedule:
    """When the next refit is due.

    Attributes:
        next_refit: Number of rows at which it is; None for never, or while one runs.
        interval: Rows between refits, once there are many.
    """

    next_refit: int | None = 1
    interval: int = _LONGEST

    def is_due(self, num_rows: int) -> bool:
        """Tell whether a refit is due after so many rows."""
        return self.next_refit is not None and num_rows >= self.next_refit

    def after(self, num_rows: int, gain: float, *, refit: str | int, warmup: int) -> "Schedule":
        """Return when the next refit is due after one that saw so many rows and gained so many nats a row."""
        n, interval = num_rows, self.interval
        if n < FEW_ROWS:
            return replace(self, next_refit=next(each for each in _EARLY if each > n))
        if n < warmup:
            # One that the end of the warm-up follows soon would be for little.
            return replace(self, next_refit=2 * n if 6 * n <= 2 * warmup else warmup)
        if refit == "doubling":
            return replace(self, next_refit=2 * n)
        if refit in ("auto", "background"):
            if n >= 2 * _LONGEST:
                interval = min(2 * interval, 8 * _LONGEST) if gain < _SETTLED_NATS else _LONGEST
            return Schedule(min(2 * n, n + interval), interval)
        return replace(self, next_refit=None if refit == "never" else n + int(refit))
