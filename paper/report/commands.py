"""Commands that repeat a figure, and how long they take."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import final

from paper.engine.durations import show_duration
from paper.schema.configuration import Configuration
from paper.schema.figure import Figure

__all__ = ["Command", "list_commands"]

_DEFAULT_DIRECTORY = Path("paper/results")


@final
@dataclass(frozen=True)
class Command:
    """A line for a shell, and what it means."""

    line: str
    note: str


def list_commands(
    figure: Figure, scale: str, directory: Path, *, configurations: tuple[Configuration, ...]
) -> tuple[Command, ...]:
    """The commands that run a figure with the settings of the page, and with those that the library has.

    Args:
        figure: The figure.
        scale: The settings of the page.
        directory: Where its results are.
        configurations: Settings that the library has for the study, `"quick"` and `"full"`.
    """
    place = "" if directory == _DEFAULT_DIRECTORY else f" --results {shlex.quote(str(directory))}"
    start = f"python -m paper run {shlex.quote(figure.name)}"
    known = [Command(f"{start} --{each.scale}{place}", _forecast(figure, each)) for each in configurations]
    if scale in (each.scale for each in configurations):
        return tuple(known)
    return (Command(f"{start} --config FILE{place}", f"with the file that has the table [{scale}]"), *known)


def _forecast(figure: Figure, configuration: Configuration) -> str:
    num_trials = configuration.num_trials if figure.is_statistical else 1
    num_units = len(figure.problems) * len(figure.methods) * num_trials
    known = configuration.seconds_by_method
    each = sum(known.get(method, configuration.seconds_per_unit) for method in figure.methods)
    duration = show_duration(len(figure.problems) * num_trials * each)
    return f"{configuration.scale} settings: {num_units} runs, about {duration} on one core"
