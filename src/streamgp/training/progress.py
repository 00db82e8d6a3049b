"""A progress bar for those who ask for one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["Reports", "progress_bar"]


class Reports(NamedTuple):
    """What training calls on its way.

    Attributes:
        on_iteration: With the objective, after each step.
        on_stage: With the most steps that a stage of training takes, when it begins.
    """

    on_iteration: Callable[[float], None] | None = None
    on_stage: Callable[[int], None] | None = None


@contextmanager
def progress_bar(*, is_shown: bool, callback: Callable[[float], None] | None) -> Iterator[Reports]:
    """Give functions that move the bar, and call the user's function.

    Args:
        is_shown: Whether there is a bar.
        callback: The user's function.
    """
    if not is_shown:
        yield Reports(callback)
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (SpinnerColumn(), TextColumn("fit"), TextColumn("{task.completed} steps"), TimeElapsedColumn())
    left = TextColumn("at most"), TimeRemainingColumn(), TextColumn("left")
    with Progress(*columns, TextColumn("objective {task.fields[objective]}"), *left) as bar:
        task = bar.add_task("fit", total=None, objective="…")

        def report(objective: float) -> None:
            bar.update(task, advance=1, objective=f"{objective:.6g}")
            if callback is not None:
                callback(objective)

        def begin(num_steps: int) -> None:
            bar.reset(task, total=num_steps)

        yield Reports(report, begin)
