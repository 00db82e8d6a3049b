"""Records that were not run, to see what a figure makes of them."""

from collections.abc import Callable, Mapping
from typing import Any

from paper.schema.figure import Figure
from paper.schema.record import Records, UnitRecord
from paper.schema.study import UnitOutcome

__all__ = ["make_records", "records_of", "records_with_ends"]


def make_records(
    figure: Figure,
    outcome: Callable[[str, str, int], UnitOutcome],
    *,
    num_trials: int = 5,
    settings: Mapping[str, Any] | None = None,
) -> Records:
    """Records of all problems and methods of a figure.

    Args:
        figure: The figure.
        outcome: Makes the outcome of a problem, a method and a seed.
        num_trials: Number of seeds.
        settings: The settings that they share; none by default.
    """
    return Records(
        tuple(
            _record(figure, problem, method, seed, outcome(problem, method, seed), settings)
            for problem in figure.problems
            for method in figure.methods
            for seed in range(num_trials)
        )
    )


def records_with_ends(
    figure: Figure,
    ends: Mapping[str, float],
    outcome: Callable[[float], UnitOutcome],
    *,
    spread: float = 0.01,
    num_trials: int = 5,
    settings: Mapping[str, Any] | None = None,
) -> Records:
    """Records of runs that end at given values, with a little that differs from trial to trial and method to method.

    Args:
        figure: The figure.
        ends: By method, where its runs end.
        outcome: Makes the outcome of a run from where it ends.
        spread: Size of what differs.
        num_trials: Number of seeds.
        settings: The settings that they share; none by default.
    """

    def differing(problem: str, method: str, seed: int) -> UnitOutcome:
        return outcome(ends[method] + spread * ((seed * 7 + len(method)) % 5))

    return make_records(figure, differing, num_trials=num_trials, settings=settings)


def records_of(
    figure: Figure,
    outcomes: Mapping[tuple[str, str], list[UnitOutcome]],
    *,
    num_trials: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Records:
    """Records of outcomes that are listed.

    Args:
        figure: The figure.
        outcomes: By problem and method, one for each seed.
        num_trials: How many seeds to take at most; all by default.
        settings: The settings that they share; none by default.
    """
    return Records(
        tuple(
            _record(figure, problem, method, seed, outcome, settings)
            for (problem, method), trials in outcomes.items()
            for seed, outcome in enumerate(trials[:num_trials])
        )
    )


def _record(
    figure: Figure, problem: str, method: str, seed: int, outcome: UnitOutcome, settings: Mapping[str, Any] | None
) -> UnitRecord:
    return UnitRecord(
        study=figure.study,
        problem=problem,
        method=method,
        seed=seed,
        scale="quick",
        settings={} if settings is None else settings,
        outcome=outcome,
        seconds=1.0,
        machine="none",
        software={},
        finished="2026-01-01T00:00:00+00:00",
    )
