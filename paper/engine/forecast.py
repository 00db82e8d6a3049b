"""How long units will take."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import final

from paper.engine.plan import Plan
from paper.schema.configuration import Configuration
from paper.schema.record import UnitRecord
from paper.schema.unit import Unit

__all__ = ["Forecast"]

_Key = tuple[str, ...]
_BASES = ("measured", "guessed and corrected by units of another scale", "guessed")


@final
@dataclass(frozen=True)
class Forecast:
    """Times of units that have run, and guesses for methods of which none has.

    Times are those of the processor where records have them. Where a method has run at another scale, the guess is
    corrected by how far the one for that scale was off.

    Attributes:
        guesses: Seconds of a unit, by study and scale, and by these and the method.
        times: Seconds of units that have run, by study, scale and method, and by these and the problem.
        calibrated: Corrected guesses, by study, scale and method.
    """

    guesses: Mapping[_Key, float]
    times: Mapping[_Key, Sequence[float]] = field(default_factory=dict)
    calibrated: Mapping[_Key, float] = field(default_factory=dict)

    @staticmethod
    def of(plans: Iterable[Plan]) -> "Forecast":
        """What is known before anything runs."""
        plans = tuple(plans)
        guesses: dict[_Key, float] = {}
        for plan in plans:
            key = (plan.study.name, plan.configuration.scale)
            guesses[key] = plan.configuration.seconds_per_unit
            guesses |= {(*key, method): seconds for method, seconds in plan.configuration.seconds_by_method.items()}
        calibrated = {key: seconds for plan in plans for key, seconds in _calibrate(plan).items()}
        return Forecast(guesses, {}, calibrated).learn(record for plan in plans for record in plan.records.all)

    def learn(self, records: Iterable[UnitRecord]) -> "Forecast":
        """Add the times of records."""
        times: dict[_Key, list[float]] = defaultdict(list, {key: list(value) for key, value in self.times.items()})
        for record in records:
            key = (record.study, record.scale, record.method)
            times[key].append(record.cost)
            times[*key, record.problem].append(record.cost)
        return Forecast(self.guesses, dict(times), self.calibrated)

    def seconds(self, units: Iterable[Unit], *, num_workers: int = 1) -> float:
        """Time until units have run: medians of their problems and methods, or of methods, or guesses.

        Args:
            units: The units.
            num_workers: How many run at a time; more than there are units are of no use.
        """
        each = [self._expect(unit) for unit in units]
        if not each:
            return 0.0
        return max(sum(each) / min(num_workers, len(each)), max(each))

    def basis(self, units: Iterable[Unit]) -> str:
        """What the times of units rest on, as a sentence."""
        counts = Counter(self._basis((unit.study, unit.scale, unit.method)) for unit in units)
        parts = [f"{counts[each]} {each}" for each in _BASES if counts[each]]
        return f"Times of units: {', '.join(parts)}." if parts else ""

    def _basis(self, key: _Key) -> str:
        if self.times.get(key):
            return _BASES[0]
        return _BASES[1] if key in self.calibrated else _BASES[2]

    def _expect(self, unit: Unit) -> float:
        key = (unit.study, unit.scale, unit.method)
        known = self.times.get((*key, unit.problem)) or self.times.get(key)
        if known:
            return median(known)
        return self.calibrated.get(key, self.guesses.get(key, self.guesses[key[:2]]))


def _calibrate(plan: Plan) -> dict[_Key, float]:
    """Guesses of a plan, times measured over guessed seconds at another scale, where a method has run there."""
    found: dict[_Key, float] = {}
    for other, records in plan.others:
        times: dict[str, list[float]] = defaultdict(list)
        for record in records.all:
            times[record.method].append(record.cost)
        for method, measured in times.items():
            ratio = median(measured) / _guess(other, method)
            key = (plan.study.name, plan.configuration.scale, method)
            found[key] = ratio * _guess(plan.configuration, method)
    return found


def _guess(configuration: Configuration, method: str) -> float:
    return configuration.seconds_by_method.get(method, configuration.seconds_per_unit)
