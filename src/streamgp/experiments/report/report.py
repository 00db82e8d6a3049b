"""All that the page shows, before it is HTML."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from urllib.parse import quote

from streamgp.experiments.configuration import Configuration
from streamgp.experiments.figure import Figure
from streamgp.experiments.report.commands import Command, list_commands
from streamgp.experiments.report.runs import Runs, describe_runs
from streamgp.experiments.report.section import Section, make_section, show_setting
from streamgp.experiments.results import Complaint, load_records, results_file

__all__ = ["Report", "make_report"]

# All that a section may say, the best first.
_VERDICTS = ("Reproduced", "Partly reproduced", "Not reproduced", "Not judged", "Incomplete", "No results")


@final
@dataclass(frozen=True)
class Report:
    """What the page shows.

    Attributes:
        scale: The settings of the runs.
        sections: One for each figure.
        commands: Commands that repeat a figure, by its name.
        links: Addresses of the files of results relative to the page, by study; of those that exist.
        full_settings: The settings of the full runs as texts, by study; those that the library has.
        complaints: What could not be used of all files.
    """

    scale: str
    sections: tuple[Section, ...]
    commands: Mapping[str, tuple[Command, ...]]
    links: Mapping[str, str]
    full_settings: Mapping[str, Mapping[str, str]]
    complaints: tuple[Complaint, ...]

    @property
    def runs(self) -> Runs:
        """Where, when and with what the results were made."""
        return describe_runs(record for section in self.sections for record in section.trials.records.all)

    @property
    def tally(self) -> tuple[tuple[str, int], ...]:
        """How often each verdict was given, as the page says it; those that were given."""
        counts = Counter(section.verdict_words for section in self.sections)
        return tuple((words, counts[words]) for words in _VERDICTS if counts[words])


def make_report(
    figures: Sequence[Figure],
    scale: str,
    directory: Path,
    *,
    home: Path,
    configurations: Mapping[str, tuple[Configuration, ...]],
) -> Report:
    """Read results, and make a section for each figure.

    Args:
        figures: What to show, in this order.
        scale: `"quick"`, `"full"`, or the name of the user's own settings.
        directory: Where files of results are.
        home: The directory of the page, from which links start.
        configurations: Settings that the library has for each study.
    """
    loaded = {
        study: load_records(study, scale, directory, settings=_current(known, scale))
        for study, known in configurations.items()
    }
    return Report(
        scale=scale,
        sections=tuple(make_section(figure, *loaded[figure.study]) for figure in figures),
        commands={
            figure.name: list_commands(figure, scale, directory, configurations=configurations[figure.study])
            for figure in figures
        },
        links={
            study: _link(file, home)
            for study in configurations
            if (file := results_file(study, scale, directory)).exists()
        },
        full_settings={study: _texts(_current(known, "full")) for study, known in configurations.items()},
        complaints=tuple(complaint for _, complaints in loaded.values() for complaint in complaints),
    )


def _current(configurations: Sequence[Configuration], scale: str) -> Mapping[str, Any] | None:
    """The settings of a scale as they are now; None if the library has none, as they are the user's own."""
    return next((each.values for each in configurations if each.scale == scale), None)


def _texts(settings: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: show_setting(value) for name, value in (settings or {}).items()}


def _link(file: Path, home: Path) -> str:
    """Address of a file relative to a directory."""
    return quote(Path(os.path.relpath(file, home)).as_posix())
