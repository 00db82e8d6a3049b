"""The command `python -m paper report`: one page from files of results."""

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from paper.commands.verdicts import judge_all
from paper.engine.times import show_duration
from paper.report.page import render_page, write_page
from paper.report.report import Report
from paper.schema.configuration import SCALES
from streamgp.errors import OptionError

__all__ = ["run_report"]


def run_report(
    console: Console, directory: Path, output: Path, *, scale: str | None, names: tuple[str, ...] | None
) -> bool:
    """Make the page, and say where it is and what is on it.

    Args:
        console: Where to print; without markup, as errors may hold brackets.
        directory: Where files of results are.
        output: The page.
        scale: `"quick"`, `"full"`, or the name of the user's own settings; if None, full results where there are any,
            and quick ones elsewhere.
        names: Figures to show, or None for all.

    Returns:
        Whether every figure could be made from its results.

    Raises:
        OptionError: If there are no results of that scale, no figure of a name, or no place for the page.
    """
    _check_output(output)
    _check_results(directory, scale)
    report = judge_all(directory, scale, names, home=output.parent)
    write_page(render_page(report), output)
    _print_summary(console, report, output)
    return not any(section.failures for section in report.sections)


def _check_output(path: Path) -> None:
    if path.is_dir():
        raise OptionError(f"{path} is a directory. Add a file name, for example {path / 'paper-report.html'}.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OptionError(f"{path}: the directory does not exist or cannot be written. Choose another --output.")


def _check_results(directory: Path, scale: str | None) -> None:
    if any((directory / each).is_dir() for each in (SCALES if scale is None else (scale,))):
        return
    scales = sorted(each.name for each in directory.iterdir() if each.is_dir()) if directory.is_dir() else []
    there = f"There are results of: {', '.join(scales)}." if scales else "There are no results at all."
    raise OptionError(
        f"There is no directory {directory / (scale or SCALES[0])}. {there} Name another with --results or --scale, or "
        "make results with python -m paper run."
    )


def _print_summary(console: Console, report: Report, output: Path) -> None:
    table = Table(title="The paper's figures")
    for name in ("figure", "title", "verdict", "scale"):
        table.add_column(name)
    for name in ("trials", "time of the runs"):
        table.add_column(name, justify="right")
    for section in report.sections:
        duration = show_duration(section.runs.seconds) if section.runs.num_units else "–"
        figure = section.figure
        words = f"{section.verdict_words}{', few trials' if section.has_few_trials else ''}"
        trials = section.trial_words
        table.add_row(figure.name, figure.title, words, section.scale, trials, duration)
    console.print(table)
    for issue in report.issues:
        _say(console, f"Left out: {issue}")
    for section in report.sections:
        for failure in section.failures:
            _say(console, f"Error in {section.figure.name}: {failure}")
    _say(console, f"Figures: {', '.join(f'{count} {words.lower()}' for words, count in report.tally)}.")
    _say(console, report.scales)
    _say(console, f"The page is {output} ({output.stat().st_size / 1e6:.1f} MB).")


def _say(console: Console, sentence: str) -> None:
    console.print(sentence, soft_wrap=True)
