"""A progress bar for those who ask for one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]

Report = Callable[[float], None]


@contextmanager
def progress_bar(*, is_shown: bool, callback: Report | None) -> Iterator[Report | None]:
    """Give a function to call with the objective after each step: it moves the bar, and calls the user's function.

    Args:
        is_shown: Whether there is a bar.
        callback: The user's function.
    """
    if not is_shown:
        yield callback
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # needed only here

    columns = (SpinnerColumn(), TextColumn("fit"), TextColumn("{task.completed} steps"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("objective {task.fields[objective]}")) as bar:
        task = bar.add_task("fit", total=None, objective="…")

        def report(objective: float) -> None:
            bar.update(task, advance=1, objective=f"{objective:.6g}")
            if callback is not None:
                callback(objective)

        yield report
