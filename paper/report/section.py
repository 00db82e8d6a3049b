"""One figure on the page: what is claimed, what was found, and how to repeat it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final

from paper.report.pictures import PicturePair, draw_pictures
from paper.report.runs import Runs, describe_runs
from paper.report.trials import Trials, select_trials
from paper.schema.figure import VERDICT_WORDS, Figure, Judgement, NumberTable
from paper.schema.record import Records
from paper.schema.results import Issue

__all__ = ["Section", "make_section", "show_setting"]

# More settings than these do not fit into a row of the summary.
_MOST_COUNTS = 3
# With fewer independent seeds than this an interval is wide, and its own width uncertain.
_FEW_TRIALS = 8

ResultT = TypeVar("ResultT")
OtherwiseT = TypeVar("OtherwiseT")


@final
@dataclass(frozen=True)
class Section:
    """What the page shows of a figure.

    Attributes:
        figure: The figure.
        scale: The settings of the runs.
        trials: The results that it is made from.
        runs: Where, when and with what they were made.
        pictures: The picture; None if there is none.
        description: The picture in words.
        tables: Numbers.
        judgement: Whether the claim held; None if nobody can say.
        failures: What went wrong while the figure was made.
        issues: What is wrong with the file of results.
    """

    figure: Figure
    scale: str
    trials: Trials
    runs: Runs
    pictures: PicturePair | None
    description: str
    tables: tuple[NumberTable, ...]
    judgement: Judgement | None
    failures: tuple[str, ...]
    issues: tuple[Issue, ...]

    @property
    def verdict(self) -> str:
        """The verdict in one word, or `"none"`."""
        return "none" if self.judgement is None else self.judgement.verdict

    @property
    def verdict_words(self) -> str:
        """The verdict as the page says it."""
        if self.judgement is not None:
            return VERDICT_WORDS[self.judgement.verdict]
        if self.trials.num_trials:
            return "Not judged"
        return "Incomplete" if self.trials.num_left_out else "No results"

    @property
    def trial_words(self) -> str:
        """Number of independent seeds of the lines that the verdict rests on: `5`, or `3 to 5`."""
        counts = None if self.judgement is None else self.judgement.num_trials
        if counts is None:
            return str(self.trials.num_trials)
        low, high = counts
        return str(low) if low == high else f"{low} to {high}"

    @property
    def has_few_trials(self) -> bool:
        """Whether a verdict that chance has a hand in rests on fewer seeds than are enough to trust it."""
        counts = None if self.judgement is None else self.judgement.num_trials
        return self.figure.is_statistical and counts is not None and counts[0] < _FEW_TRIALS

    @property
    def evidence(self) -> str:
        """Why the verdict is what it is, besides what the parts of the claim say."""
        if self.judgement is not None:
            return _capitalized(self.judgement.remark)
        if not self.trials.num_trials:
            return "Not all that the figure needs has run with these settings; the command below runs what is missing."
        if self.failures:
            return "It could not be judged; see the error."
        if self.trials.num_trials > 1:
            return "A verdict needs lines that the claim compares, with three trials in common; these have not run yet."
        return "One trial has no error to compare a difference with: a verdict needs at least three."

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """Names and values of the settings."""
        if not self.trials.num_trials:
            return ()
        return tuple((name, show_setting(value)) for name, value in self.trials.records.settings.items())

    @property
    def counts(self) -> str:
        """The first settings that count something, in a few words: `10 initial, 60 evaluations`."""
        named = [(name.removeprefix("num_"), value) for name, value in self.settings if name.startswith("num_")]
        return ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in named[:_MOST_COUNTS])


def make_section(figure: Figure, records: Records, issues: Sequence[Issue], *, scale: str) -> Section:
    """Draw and judge a figure.

    An error on the way is kept as a sentence, and the rest of the section is made all the same.

    Args:
        figure: The figure.
        records: All results of its study.
        issues: What is wrong with their file.
        scale: The settings of the runs.
    """
    trials = select_trials(figure, records)
    failures: list[str] = []

    def attempt(task: str, make: Callable[[Records], ResultT], otherwise: OtherwiseT) -> ResultT | OtherwiseT:
        try:
            return make(trials.records)
        except Exception as error:  # whatever it is, the other figures are still to be shown
            failures.append(f"{task} failed with {type(error).__name__}: {error}")
            return otherwise

    is_shown = trials.num_trials > 0
    is_judged = trials.is_enough(figure)
    pictures = attempt("Drawing", lambda found: draw_pictures(figure, found), None) if is_shown else None
    description = attempt("Describing the picture", figure.describe, figure.title) if is_shown else ""
    tables = attempt("Making the tables", figure.tables, ()) if is_shown else ()
    judgement = attempt("Judging", figure.judge, None) if is_judged else None
    if judgement is not None and not judgement.has_parts:
        judgement = None
    return Section(
        figure=figure,
        scale=scale,
        trials=trials,
        runs=describe_runs(trials.records.all),
        pictures=pictures,
        description=description,
        tables=tables,
        judgement=judgement,
        failures=tuple(failures),
        issues=tuple(issues),
    )


def show_setting(value: Any) -> str:
    """The value of a setting as text."""
    if isinstance(value, (list, tuple)):
        return ", ".join(show_setting(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _capitalized(sentence: str) -> str:
    """The sentence with a capital first letter, unless it begins with a name such as qKG."""
    return sentence if sentence[1:2].isupper() else sentence[:1].upper() + sentence[1:]
