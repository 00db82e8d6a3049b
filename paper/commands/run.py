"""`python -m paper run`: run the units of figures and studies that have not run yet."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from paper import registry
from paper.engine.plan import Plan, RunRequest, make_plans
from paper.engine.running import Failure, connect, only_run, run_units
from paper.engine.times import show_duration
from paper.schema.record import UnitRecord
from streamgp.cli.arguments import words
from streamgp.cli.error_handling import report_errors

__all__ = ["run", "run_plans"]

# Issues beyond these are counted: more would hide what else is printed.
_NUM_ISSUES = 10


def run(
    names: Annotated[
        list[str] | None, typer.Argument(help="Figures or studies, as --list shows them; or all.", show_default=False)
    ] = None,
    is_quick: Annotated[bool, typer.Option("--quick", help="Settings that take minutes; the default.")] = False,
    is_full: Annotated[bool, typer.Option("--full", help="Settings of the paper.")] = False,
    config: Annotated[Path | None, typer.Option(help="A file with settings of your own for one study.")] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds; by default as the settings say.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    methods: Annotated[str | None, typer.Option(help="Methods to run, separated by commas.")] = None,
    problems: Annotated[str | None, typer.Option(help="Problems to run, separated by commas.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Units that run at a time; by default one for each core.")
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler whose workers run the units.")] = None,
    results: Annotated[Path, typer.Option(help="Where files of results are.")] = Path("paper/results"),
    is_listed: Annotated[bool, typer.Option("--list", help="Show what there is and what has run, and exit.")] = False,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Show what would run and how long, and exit.")] = False,
) -> None:
    """Run experiments; units that have run before are not run again."""
    if not names and not is_listed:
        raise typer.BadParameter("Name figures or studies, or all. --list shows them.", param_hint="NAMES")
    if is_quick + is_full + (config is not None) > 1:
        raise typer.BadParameter("Choose one of --quick, --full and --config.")
    console = Console(stderr=not is_listed, markup=False, highlight=False, soft_wrap=True)
    request = RunRequest(
        tuple(names or ()),
        scale="full" if is_full else "quick",
        config=config,
        num_trials=trials,
        first_seed=seed,
        problems=words(problems),
        methods=words(methods),
    )
    failures: Sequence[Failure] = ()
    with report_errors():
        if is_listed:
            console.print(_list_figures(request, results) if not names else _list_lines(request, results))
            return
        plans = make_plans(request, results)
        _print_plans(console, plans, num_workers=jobs or os.cpu_count() or 1)
        if any(plan.tasks for plan in plans) and not is_dry:
            try:
                failures = run_plans(console, plans, results, num_jobs=jobs or os.cpu_count() or 1, address=dask)
            except KeyboardInterrupt:
                console.print("Stopped. Units that had ended are kept; run the same command again to go on.")
                raise typer.Exit(130) from None
    if failures:
        raise typer.Exit(1)


def run_plans(
    console: Console, plans: Sequence[Plan], directory: Path, *, num_jobs: int, address: str | None = None
) -> tuple[Failure, ...]:
    """Run the units that have not run yet, and keep each as it ends.

    Args:
        console: Where text goes.
        plans: What to run.
        directory: Where files of results are.
        num_jobs: How many units run at a time on this machine.
        address: Scheduler of a Dask cluster that runs them instead.

    Returns:
        The units that failed.
    """
    tasks = sorted((task for plan in plans for task in plan.tasks), key=lambda task: task.unit.seed)
    forecasts = {plan.study.name: plan.forecast for plan in plans}
    left = dict.fromkeys(task.unit for task in tasks)
    failures: list[Failure] = []
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with only_run(directory), connect(address, min(num_jobs, len(tasks))) as client, bar:
        num_workers = max(1, sum(client.nthreads().values()))
        shown = bar.add_task("starting", total=len(tasks))

        def tell(result: UnitRecord | Failure) -> None:
            unit = result.unit
            del left[unit]
            if isinstance(result, UnitRecord):
                forecasts[unit.study] = forecasts[unit.study].learn([result])
                ending = show_duration(result.seconds)
            else:
                failures.append(result)
                ending = f"failed: {result.trace.splitlines()[-1]}"
            seconds = sum(
                forecast.seconds((each for each in left if each.study == study), num_workers=num_workers)
                for study, forecast in forecasts.items()
            )
            rest = f"{show_duration(seconds)} left"
            bar.update(shown, completed=len(tasks) - len(left), description=rest)
            if bar.disable or isinstance(result, Failure):
                console.print(f"{len(tasks) - len(left)} of {len(tasks)}: {unit}: {ending}; {rest}")

        run_units(tasks, client, directory, tell=tell)
    _print_end(console, len(tasks) - len(failures), failures)
    return tuple(failures)


def _print_plans(console: Console, plans: Sequence[Plan], *, num_workers: int) -> None:
    issues = [issue for plan in plans for issue in plan.issues]
    for issue in issues[:_NUM_ISSUES]:
        console.print(str(issue))
    if len(issues) > _NUM_ISSUES:
        console.print(f"And {len(issues) - _NUM_ISSUES} more lines that were left out.")
    for plan in plans:
        units = [task.unit for task in plan.tasks]
        start = f"{plan.study.name} ({plan.configuration.scale}): {len(units)} of {len(plan.units)} units to run"
        if not units:
            console.print(f"{start}. To run them anew beside those recorded, name a directory: --results mine")
            continue
        forecast = plan.forecast
        seconds, num_guessed = forecast.seconds(units, num_workers=num_workers), forecast.num_guessed(units)
        basis = f"; times of {num_guessed} are guessed" if num_guessed else ""
        console.print(f"{start}, {show_duration(seconds)} with {num_workers} at a time{basis}")


def _print_end(console: Console, num_finished: int, failures: Sequence[Failure]) -> None:
    """Print why units failed, once for each method, and what is kept."""
    groups: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        groups.setdefault((failure.unit.study, failure.unit.method), []).append(failure)
    for first, *others in groups.values():
        more = f" (and {len(others)} more of this method)" if others else ""
        console.print(f"\nFailed: {first.unit}{more}\n{first.trace}\n")
    ending = f", {len(failures)} failed. Run the same command again to try these again" if failures else ""
    console.print(f"{num_finished} units have run and are kept{ending}.")


def _list_figures(request: RunRequest, directory: Path) -> Table:
    """Each figure, and how much of it has run."""
    table = Table("Figure", "Title", "Study", "Units", "Time left on one core", title="Figures")
    for name in registry.FIGURES:
        figure = registry.find_figure(name)
        (plan,) = make_plans(replace(request, names=(name,)), directory)
        left = [task.unit for task in plan.tasks]
        seconds = show_duration(plan.forecast.seconds(left)) if left else "none"
        table.add_row(name, figure.title, figure.study, f"{len(plan.units) - len(left)} of {len(plan.units)}", seconds)
    return table


def _list_lines(request: RunRequest, directory: Path) -> Table:
    """Each line of some figures or studies, its number of seeds, and the time of one."""
    table = Table("Study", "Problem", "Method", "What it is", "Seeds", "Time of one", title="Lines")
    for plan in make_plans(request, directory):
        for problem, method in dict.fromkeys((unit.problem, unit.method) for unit in plan.units):
            found = plan.records.of(problem, method)
            cost = show_duration(median(record.cost for record in found)) if found else "–"
            table.add_row(plan.study.name, problem, method, plan.study.methods[method], str(len(found)), cost)
    return table
