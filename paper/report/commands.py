"""Commands that repeat a figure, and how long they take."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from paper.engine.times import Forecast, show_duration
from paper.schema.configuration import Configuration
from paper.schema.figure import Figure
from paper.schema.record import Records, Unit

__all__ = ["Command", "list_commands"]

_DEFAULT_DIRECTORY = Path("paper/results")


@final
@dataclass(frozen=True)
class Command:
    """A line for a shell, and what it means."""

    line: str
    note: str


def list_commands(
    figure: Figure,
    scale: str,
    directory: Path,
    *,
    configurations: tuple[Configuration, ...],
    known: Mapping[str, Records],
) -> tuple[Command, ...]:
    """The commands that run a figure with the settings of the page, and with those that the repository has.

    Args:
        figure: The figure.
        scale: The settings of the page.
        directory: Where its results are.
        configurations: Settings that the repository has for the study, `"quick"` and `"full"`.
        known: What has run at these, whose times tell how long it takes.
    """
    place = "" if directory == _DEFAULT_DIRECTORY else f" --results {shlex.quote(str(directory))}"
    start = f"python -m paper run {shlex.quote(figure.name)}"
    lines = [
        Command(f"{start} --{each.scale}{place}", _forecast(figure, each, known[each.scale])) for each in configurations
    ]
    if scale in (each.scale for each in configurations):
        return tuple(lines)
    return (Command(f"{start} --config FILE{place}", f"with the file that has the table [{scale}]"), *lines)


def _forecast(figure: Figure, configuration: Configuration, known: Records) -> str:
    """How long a figure takes, by the processor times of its own lines where these have run."""
    num_trials, scale = configuration.num_trials if figure.is_statistical else 1, configuration.scale
    units = [Unit(figure.study, scale, *line, seed) for seed in range(num_trials) for line in figure.lines]
    forecast = Forecast(configuration.seconds_per_unit).learn(known.all)
    num_guessed = forecast.num_guessed(units)
    basis = f", {num_guessed} of these times guessed" if num_guessed else ""
    return f"{scale} settings: {len(units)} runs, about {show_duration(forecast.seconds(units))} on one core{basis}"
