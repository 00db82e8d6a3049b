"""The unit of work."""

from dataclasses import dataclass
from typing import final

from paper.schema.record import UnitRecord

__all__ = ["Unit"]


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

    @staticmethod
    def of(record: UnitRecord) -> "Unit":
        """The unit that a record is about."""
        return Unit(record.study, record.scale, record.problem, record.method, record.seed)

    def __str__(self) -> str:
        return f"{self.study}: {self.problem}, {self.method}, seed {self.seed}"
