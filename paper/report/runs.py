"""Where, when and with what results were made."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from paper.schema.record import UnitRecord

__all__ = ["Runs", "describe_runs"]


@final
@dataclass(frozen=True)
class Runs:
    """What results have in common.

    Attributes:
        num_units: Number of units.
        seconds: Sum of their wall times; each had one thread.
        machines: Machines that they ran on.
        software: Names and versions; more than one version if they differ.
        days: First and last day, in ISO 8601; the same day once.
    """

    num_units: int
    seconds: float
    machines: tuple[str, ...]
    software: tuple[tuple[str, str], ...]
    days: tuple[str, ...]


def describe_runs(records: Iterable[UnitRecord]) -> Runs:
    """Sum up where, when and with what results were made; each unit counts once."""
    units = {record.unit: record for record in records}.values()
    days = sorted({each.finished[:10] for each in units})
    versions: dict[str, set[str]] = {}
    for each in units:
        for name, version in each.software.items():
            versions.setdefault(name, set()).add(str(version))
    return Runs(
        num_units=len(units),
        seconds=sum(each.seconds for each in units),
        machines=tuple(sorted({each.machine for each in units})),
        software=tuple((name, ", ".join(sorted(versions[name]))) for name in sorted(versions)),
        days=tuple(dict.fromkeys((days[0], days[-1]))) if days else (),
    )
