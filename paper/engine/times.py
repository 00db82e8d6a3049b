"""Times of units that have run, and of those that will."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import final

from paper.schema.record import Unit, UnitRecord

__all__ = ["Forecast", "show_duration"]


@final
@dataclass(frozen=True)
class Forecast:
    """Processor times of units that have run, from which those of others are told.

    Attributes:
        guess: Seconds of a unit of whose method nothing has run.
        times: Seconds by problem and method, and by method.
    """

    guess: float
    times: dict[tuple[str, ...], list[float]] = field(default_factory=lambda: defaultdict(list))

    def learn(self, records: Iterable[UnitRecord]) -> "Forecast":
        """Add the times of records; returns itself with them."""
        times = defaultdict(list, {key: list(value) for key, value in self.times.items()})
        for record in records:
            times[record.problem, record.method].append(record.cost)
            times[record.method,].append(record.cost)
        return Forecast(self.guess, times)

    def seconds(self, units: Iterable[Unit], *, num_workers: int = 1) -> float:
        """Time until units have run: medians of their line, or of their method, or the guess."""
        each = [self._expect(unit) for unit in units]
        return max(sum(each) / min(num_workers, len(each)), max(each)) if each else 0.0

    def num_guessed(self, units: Iterable[Unit]) -> int:
        """Number of units whose time is a guess."""
        return sum(not self._known(unit) for unit in units)

    def _expect(self, unit: Unit) -> float:
        known = self._known(unit)
        return median(known) if known else self.guess

    def _known(self, unit: Unit) -> list[float]:
        return self.times.get((unit.problem, unit.method)) or self.times.get((unit.method,)) or []


def show_duration(seconds: float) -> str:
    """A time as people say it: `40 s`, `12 min`, `3.5 h`, `4 days`."""
    if seconds < 1.0:
        return "under 1 s"
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    if seconds < 100.0 * 60.0:
        return f"{seconds / 60.0:.0f} min"
    if seconds < 48.0 * 3600.0:
        return f"{seconds / 3600.0:.3g} h"
    return f"{seconds / 86400.0:.3g} days"
