"""All that the page shows, before it is HTML."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from urllib.parse import quote

from paper.report.commands import Command, list_commands
from paper.report.runs import Runs, describe_runs
from paper.report.section import Section, make_section, show_setting
from paper.report.trials import select_trials
from paper.schema.configuration import Configuration
from paper.schema.figure import VERDICT_WORDS, Figure
from paper.schema.record import Records
from paper.schema.results import Issue, load_records, results_file

__all__ = ["Report", "make_report"]

# All that a section may say, the best first.
_VERDICTS = (*VERDICT_WORDS.values(), "Not judged", "Incomplete", "No results")


@final
@dataclass(frozen=True)
class Report:
    """What the page shows.

    Attributes:
        sections: One for each figure.
        commands: Commands that repeat a figure, by its name.
        links: Addresses of the files of results relative to the page, by figure; of those that exist.
        full_settings: The settings of the full runs as texts, by study; those that the library has.
        issues: What could not be used of all files.
    """

    sections: tuple[Section, ...]
    commands: Mapping[str, tuple[Command, ...]]
    links: Mapping[str, str]
    full_settings: Mapping[str, Mapping[str, str]]
    issues: tuple[Issue, ...]

    @property
    def runs(self) -> Runs:
        """Where, when and with what the results were made."""
        return describe_runs(record for section in self.sections for record in section.trials.records.all)

    @property
    def tally(self) -> tuple[tuple[str, int], ...]:
        """How often each verdict was given, as the page says it; those that were given."""
        counts = Counter(section.verdict_words for section in self.sections)
        return tuple((words, counts[words]) for words in _VERDICTS if counts[words])

    @property
    def scales(self) -> str:
        """With which settings claims were judged, in a sentence."""
        counts = Counter(section.scale for section in self.sections if section.judgement is not None)
        num_judged = sum(counts.values())
        parts = [f"{counts[scale]} at {scale} settings" for scale in sorted(counts, key=lambda each: each != "full")]
        split = f": {', '.join(parts)}" if parts else ""
        return f"{num_judged} of {len(self.sections)} claims were judged{split}."


def make_report(
    figures: Sequence[Figure],
    scale: str | None,
    directory: Path,
    *,
    home: Path,
    configurations: Mapping[str, tuple[Configuration, ...]],
) -> Report:
    """Read results, and make a section for each figure.

    Args:
        figures: What to show, in this order.
        scale: `"quick"`, `"full"`, or the name of the user's own settings; if None, for each figure the full results
            where there are enough of them to judge a part of its claim, and the quick ones elsewhere.
        directory: Where files of results are.
        home: The directory of the page, from which links start.
        configurations: Settings that the library has for each study.
    """
    scales = ("full", "quick") if scale is None else (scale,)
    loaded = {
        (study, each): load_records(study, each, directory, settings=_current(known, each))
        for study, known in configurations.items()
        for each in dict.fromkeys((*scales, *(one.scale for one in known)))
    }
    shown = {figure.name: _choose_scale(figure, scales, loaded) for figure in figures}
    used = dict.fromkeys((figure.study, shown[figure.name]) for figure in figures)
    files = {figure.name: results_file(figure.study, shown[figure.name], directory) for figure in figures}
    return Report(
        sections=tuple(
            make_section(figure, *loaded[figure.study, shown[figure.name]], scale=shown[figure.name])
            for figure in figures
        ),
        commands={
            figure.name: list_commands(
                figure,
                shown[figure.name],
                directory,
                configurations=configurations[figure.study],
                known={each.scale: loaded[figure.study, each.scale][0] for each in configurations[figure.study]},
            )
            for figure in figures
        },
        links={name: _link(file, home) for name, file in files.items() if file.exists()},
        full_settings={study: _texts(_current(known, "full")) for study, known in configurations.items()},
        issues=tuple(issue for key in used for issue in loaded[key][1]),
    )


def _choose_scale(
    figure: Figure, scales: Sequence[str], loaded: Mapping[tuple[str, str], tuple[Records, tuple[Issue, ...]]]
) -> str:
    """The first scale with results enough for a part of the claim, or the last one."""
    for scale in scales[:-1]:
        trials = select_trials(figure, loaded[figure.study, scale][0])
        if trials.is_enough(figure) and _can_judge(figure, trials.records):
            return scale
    return scales[-1]


def _can_judge(figure: Figure, records: Records) -> bool:
    """Whether there is a part of the claim that results speak of; where judging fails, the section says so."""
    try:
        judgement = figure.judge(records)
    except Exception:
        return True
    return judgement.has_parts


def _current(configurations: Sequence[Configuration], scale: str) -> Mapping[str, Any] | None:
    """The settings of a scale as they are now; None if the library has none, as they are the user's own."""
    return next((each.values for each in configurations if each.scale == scale), None)


def _texts(settings: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: show_setting(value) for name, value in (settings or {}).items()}


def _link(file: Path, home: Path) -> str:
    """Address of a file relative to a directory."""
    return quote(Path(os.path.relpath(file, home)).as_posix())
