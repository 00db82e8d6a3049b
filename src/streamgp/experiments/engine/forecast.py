"""How long units will take."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import final

from streamgp.experiments.engine.plan import Plan
from streamgp.experiments.schema.record import UnitRecord
from streamgp.experiments.schema.unit import Unit

__all__ = ["Forecast"]

_Key = tuple[str, ...]


@final
@dataclass(frozen=True)
class Forecast:
    """Times of units that have run, and guesses for methods of which none has.

    Attributes:
        guesses: Seconds of a unit, by study and scale, and by these and the method.
        times: Seconds of units that have run, by study, scale and method, and by these and the problem.
    """

    guesses: Mapping[_Key, float]
    times: Mapping[_Key, Sequence[float]] = field(default_factory=dict)

    @staticmethod
    def of(plans: Iterable[Plan]) -> "Forecast":
        """What is known before anything runs."""
        plans = tuple(plans)
        guesses: dict[_Key, float] = {}
        for plan in plans:
            key = (plan.study.name, plan.configuration.scale)
            guesses[key] = plan.configuration.seconds_per_unit
            guesses |= {(*key, method): seconds for method, seconds in plan.configuration.seconds_by_method.items()}
        return Forecast(guesses).learn(record for plan in plans for record in plan.records.all)

    def learn(self, records: Iterable[UnitRecord]) -> "Forecast":
        """Add the times of records."""
        times: dict[_Key, list[float]] = defaultdict(list, {key: list(value) for key, value in self.times.items()})
        for record in records:
            key = (record.study, record.scale, record.method)
            times[key].append(record.seconds)
            times[*key, record.problem].append(record.seconds)
        return Forecast(self.guesses, dict(times))

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

    def _expect(self, unit: Unit) -> float:
        key = (unit.study, unit.scale, unit.method)
        known = self.times.get((*key, unit.problem)) or self.times.get(key)
        return median(known) if known else self.guesses.get(key, self.guesses[key[:2]])
