"""`python -m paper run`: run the units of figures and studies that have not run yet."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from paper.commands.run.progress import RunProgress
from paper.engine.dask_engine import DaskEngine
from paper.engine.durations import show_duration
from paper.engine.execution import Failure, UnitTask, unit_of
from paper.engine.forecast import Forecast
from paper.engine.local_engine import AbstractEngine, JoblibEngine
from paper.engine.plan import Plan, RunRequest, make_plans
from paper.engine.results import append_record
from paper.engine.unit_locks import UnitLocks, claim_units
from paper.registry import FIGURES, find_figure, find_study
from paper.report.decisions import undecided_figures
from paper.schema.configuration import read_configuration
from paper.schema.record import UnitRecord
from streamgp.errors import OptionError

__all__ = ["run_experiments", "run_until_decided"]

# Issues beyond these are counted: more would hide what else is printed.
_NUM_COMPLAINTS = 10
# Trials that are added before claims are looked at again.
_NUM_ADDED = 5


def run_experiments(
    console: Console,
    request: RunRequest,
    directory: Path,
    *,
    num_jobs: int,
    address: str | None = None,
    is_dry: bool = False,
) -> tuple[Failure, ...]:
    """Run the units of a request that have not run yet, and keep each as it ends.

    Args:
        console: Where text goes.
        request: What to run.
        directory: Where files of results are.
        num_jobs: How many units run at a time on this machine.
        address: Scheduler of a Dask cluster that runs them instead.
        is_dry: Whether to stop after the forecast.

    Returns:
        The units that failed.
    """
    plans = make_plans(request, directory)
    if not any(plan.units for plan in plans):
        raise OptionError("No problem goes together with a method here. Name others with --problems and --methods.")
    _print_issues(console, plans)
    tasks = sorted((task for plan in plans for task in plan.tasks), key=lambda task: task.unit.seed)
    if not tasks:
        _say(console, f"All {sum(len(plan.units) for plan in plans)} units have run; nothing is left to do.")
        return ()
    engine = JoblibEngine(num_jobs) if address is None or is_dry else DaskEngine(address)
    forecast = Forecast.of(plans)
    _print_forecast(console, plans, forecast, num_workers=engine.num_workers)
    if is_dry:
        return ()
    units = tuple(task.unit for task in tasks)
    with RunProgress(console, forecast, units, num_workers=engine.num_workers) as progress:
        failures = _run(engine, tasks, progress, directory=directory)
    _print_end(console, len(tasks) - len(failures) - progress.num_skipped, failures, progress.num_skipped)
    return failures


def run_until_decided(
    console: Console,
    request: RunRequest,
    directory: Path,
    *,
    max_trials: int,
    num_jobs: int,
    address: str | None = None,
) -> tuple[Failure, ...]:
    """Run figures, then add trials to those whose claims are not decided yet, five at a time.

    Args:
        console: Where text goes.
        request: What to run: figures, with settings that the library has.
        directory: Where files of results are.
        max_trials: Most trials of a figure.
        num_jobs: How many units run at a time on this machine.
        address: Scheduler of a Dask cluster that runs them instead.

    Returns:
        The units that failed.

    Raises:
        OptionError: If a name is not that of a figure, or settings are the user's own.
    """
    names = FIGURES if "all" in request.names else request.names
    if request.config is not None or any(name not in FIGURES for name in names):
        raise OptionError(
            "--until-decided needs figures with claims, and --quick or --full. Name figures as --list shows them."
        )
    failures = list(run_experiments(console, request, directory, num_jobs=num_jobs, address=address))
    num_trials = request.num_trials or max(_num_trials(name, request.scale) for name in names)
    while (open_figures := undecided_figures(names, request.scale, directory)) and not failures:
        num_trials += _NUM_ADDED
        if num_trials > max_trials:
            _say(console, f"Not decided with at most {max_trials} trials: {', '.join(open_figures)}.")
            break
        _say(console, f"Not decided yet: {', '.join(open_figures)}. On to {num_trials} trials.")
        more = replace(request, names=tuple(open_figures), num_trials=num_trials)
        failures += run_experiments(console, more, directory, num_jobs=num_jobs, address=address)
    else:
        _say(console, "All claims are decided." if not failures else "Stopped, as units failed.")
    return tuple(failures)


def _num_trials(name: str, scale: str) -> int:
    return read_configuration(find_study(find_figure(name).study), scale).num_trials


def _run(
    engine: AbstractEngine, tasks: Sequence[UnitTask], progress: RunProgress, *, directory: Path
) -> tuple[Failure, ...]:
    failures = []
    with UnitLocks(directory) as locks:
        claimed = claim_units(tasks, directory, locks=locks, skip=progress.skip)
        for result in engine.run(claimed, announce=progress.start):
            if isinstance(result, UnitRecord):
                append_record(result, directory)
            else:
                failures.append(result)
            locks.release(unit_of(result))
            progress.finish(result)
    return tuple(failures)


def _print_issues(console: Console, plans: Sequence[Plan]) -> None:
    issues = [issue for plan in plans for issue in plan.issues]
    for issue in issues[:_NUM_COMPLAINTS]:
        _say(console, str(issue))
    if len(issues) > _NUM_COMPLAINTS:
        _say(console, f"And {len(issues) - _NUM_COMPLAINTS} more lines that were left out.")


def _print_forecast(console: Console, plans: Sequence[Plan], forecast: Forecast, *, num_workers: int) -> None:
    for plan in plans:
        left = [task.unit for task in plan.tasks]
        time = f", {show_duration(forecast.seconds(left, num_workers=num_workers))}" if left else ""
        scale = plan.configuration.scale
        _say(console, f"{plan.study.name} ({scale}): {len(left)} of {len(plan.units)} units to run{time}")
    units = [task.unit for plan in plans for task in plan.tasks]
    seconds = forecast.seconds(units, num_workers=num_workers)
    _say(console, f"Forecast: {show_duration(seconds)} with {num_workers} at a time. {forecast.basis(units)}")


def _print_end(console: Console, num_finished: int, failures: Sequence[Failure], num_skipped: int) -> None:
    """Print why units failed, once for each method, and what is kept."""
    groups: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        groups.setdefault((failure.unit.study, failure.unit.method), []).append(failure)
    for first, *others in groups.values():
        more = f" (and {len(others)} more of this method)" if others else ""
        _say(console, f"\nFailed: {first.unit}{more}\n{first.trace}\n")
    ending = f", {len(failures)} failed. Run the same command again to try these again" if failures else ""
    _say(console, f"{num_finished} units have run and are kept{ending}.")
    if num_skipped:
        _say(console, f"{num_skipped} units were left to other runs on this directory, which do or did them.")


def _say(console: Console, sentence: str) -> None:
    console.print(sentence, soft_wrap=True, highlight=False, markup=False)
