"""Which figures need more trials before all parts of their claims are decided."""

from collections.abc import Sequence
from pathlib import Path

from paper import registry
from paper.engine.results import load_records
from paper.report.trials import select_trials
from paper.schema.configuration import read_configuration

__all__ = ["undecided_figures"]


def undecided_figures(names: Sequence[str], scale: str, directory: Path) -> list[str]:
    """The figures whose claims more trials could decide; those that show one trial are never among them.

    Args:
        names: Names of figures.
        scale: `"quick"` or `"full"`.
        directory: Where files of results are.
    """
    found = []
    for name in names:
        figure = registry.find_figure(name)
        if not figure.is_statistical:
            continue
        settings = read_configuration(registry.find_study(figure.study), scale).values
        records, _ = load_records(figure.study, scale, directory, settings=settings)
        trials = select_trials(figure, records)
        if not trials.is_enough(figure) or not figure.judge(trials.records).is_decided:
            found.append(name)
    return found
