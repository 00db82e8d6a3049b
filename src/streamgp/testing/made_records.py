"""Records that were not run, to see what a figure makes of them."""

from collections.abc import Callable, Mapping
from typing import Any

from streamgp.experiments.schema.figure import Figure
from streamgp.experiments.schema.record import Records, UnitRecord
from streamgp.experiments.schema.study import UnitOutcome

__all__ = ["make_records"]


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
            UnitRecord(
                study=figure.study,
                problem=problem,
                method=method,
                seed=seed,
                scale="quick",
                settings={} if settings is None else settings,
                outcome=outcome(problem, method, seed),
                seconds=1.0,
                machine="none",
                software={},
                finished="2026-01-01T00:00:00+00:00",
            )
            for problem in figure.problems
            for method in figure.methods
            for seed in range(num_trials)
        )
    )
