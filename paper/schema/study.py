"""What can be run: problems, methods, and a function of one of each and a seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

__all__ = ["Study", "UnitOutcome"]

# What one unit found: numbers, texts, lists and tables of them, as JSON has them.
UnitOutcome = dict[str, Any]
SettingsT = TypeVar("SettingsT")


@final
@dataclass(frozen=True)
class Study(Generic[SettingsT]):
    """A family of runs that share settings and a file of results.

    The unit of work is (problem, method, seed). Several figures may draw from one study.

    Attributes:
        name: Name of the study, of its settings (`settings/NAME.toml`) and of its file of results.
        problems: Names of the problems, each with a line that says what it is.
        methods: Names of the methods, each with the label that pictures and tables show.
        settings: Type of the settings, a frozen dataclass; its fields are the keys of the TOML file.
        run: Runs one unit, called as `run(problem, method, seed, settings)` in a process with one thread.
        datasets: Names of the data sets that it reads, of `paper.datasets`.
    """

    name: str
    problems: Mapping[str, str]
    methods: Mapping[str, str]
    settings: type[SettingsT]
    run: Callable[[str, str, int, SettingsT], UnitOutcome]
    datasets: tuple[str, ...] = ()
