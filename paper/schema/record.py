"""What is kept of a unit that has run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

__all__ = ["Records", "Unit", "UnitRecord"]


@final
@dataclass(frozen=True)
class Unit:
    """One problem, one method and one seed of a study, at a scale.

    Attributes:
        study: Name of the study.
        scale: `"quick"`, `"full"`, or the name of the user's own settings.
        problem: Name of the problem.
        method: Name of the method.
        seed: Seed of all that is random.
    """

    study: str
    scale: str
    problem: str
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.study}: {self.problem}, {self.method}, seed {self.seed}"


@final
@dataclass(frozen=True)
class UnitRecord:
    """One line of a file of results.

    Attributes:
        study: Name of the study.
        problem: Name of the problem.
        method: Name of the method.
        seed: Seed of the unit.
        scale: `"quick"`, `"full"`, or the name of the user's own settings.
        settings: The settings of the run.
        outcome: What the unit found.
        seconds: Wall time.
        machine: Processor and number of its cores.
        software: Versions of Python and of the libraries that matter.
        finished: When the unit ended, in ISO 8601, UTC.
        processor_seconds: Time of the processor, which other work on the machine changes little; None in old records.
    """

    study: str
    problem: str
    method: str
    seed: int
    scale: str
    settings: Mapping[str, Any]
    outcome: Mapping[str, Any]
    seconds: float
    machine: str
    software: Mapping[str, str]
    finished: str
    processor_seconds: float | None = None

    @property
    def unit(self) -> Unit:
        """The unit that the record is about."""
        return Unit(self.study, self.scale, self.problem, self.method, self.seed)

    @property
    def cost(self) -> float:
        """Time that the unit takes on a machine of its own: that of the processor where it is known."""
        return self.seconds if self.processor_seconds is None else self.processor_seconds


@final
@dataclass(frozen=True)
class Records:
    """Results from which a figure is made; all of one study and scale."""

    all: tuple[UnitRecord, ...]

    def of(self, problem: str, method: str) -> tuple[UnitRecord, ...]:
        """The records of a problem and method, in the order of their seeds."""
        found = (record for record in self.all if (record.problem, record.method) == (problem, method))
        return tuple(sorted(found, key=lambda record: record.seed))

    def shared(self, pairs: Iterable[tuple[str, str]]) -> "Records":
        """The records of these problems and methods, of the seeds that all of them have."""
        found = [self.of(*pair) for pair in dict.fromkeys(pairs)]
        seeds = set.intersection(*({record.seed for record in each} for each in found)) if found else set()
        return Records(tuple(record for each in found for record in each if record.seed in seeds))

    def outcomes(self, problem: str, method: str, name: str) -> list[Any]:
        """One entry of the outcomes of a problem and method, in the order of their seeds."""
        return [record.outcome[name] for record in self.of(problem, method)]

    def outcome(self, problem: str, method: str) -> Mapping[str, Any]:
        """The outcome of the smallest seed, for pictures that show one run."""
        return self.of(problem, method)[0].outcome

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that all share."""
        return self.all[0].settings
