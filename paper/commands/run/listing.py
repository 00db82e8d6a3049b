"""`python -m paper run --list`: what can be run, and what has run."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from paper import registry
from paper.engine.durations import show_duration
from paper.engine.forecast import Forecast
from paper.engine.plan import RunRequest, make_plans

__all__ = ["print_list"]


def print_list(console: Console, request: RunRequest, directory: Path, *, num_workers: int) -> None:
    """Print a table of figures and one of studies.

    Args:
        console: Where to print.
        request: Names to list, all of them if there are none, and how they would be run.
        directory: Where files of results are.
        num_workers: How many units would run at a time.
    """
    is_all = not request.names or "all" in request.names
    names = dict.fromkeys((*registry.FIGURES, *registry.STUDIES) if is_all else request.names)
    progress = {name: _progress(replace(request, names=(name,)), directory, num_workers) for name in names}
    figures = _table("Figures", "Name", "Title", "Study")
    studies = _table("Studies", "Name", "Problems", "Methods")
    for name in names:
        if name in registry.FIGURES:
            figure = registry.find_figure(name)
            figures.add_row(name, figure.title, figure.study, *progress[name])
        if name in registry.STUDIES:
            study = registry.find_study(name)
            studies.add_row(name, ", ".join(study.problems), ", ".join(study.methods), *progress[name])
    for table in (figures, studies):
        if table.row_count:
            console.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(*columns, title=title, title_justify="left")
    table.add_column("Units", justify="right", no_wrap=True)
    table.add_column("Time left", justify="right", no_wrap=True)
    return table


def _progress(request: RunRequest, directory: Path, num_workers: int) -> tuple[str, str]:
    """Units that have run of all, and the time that the others will take."""
    plans = make_plans(request, directory)
    num_units = sum(len(plan.units) for plan in plans)
    left = [task.unit for plan in plans for task in plan.tasks]
    seconds = Forecast.of(plans).seconds(left, num_workers=num_workers)
    return f"{num_units - len(left)} of {num_units}", show_duration(seconds) if left else "none"
