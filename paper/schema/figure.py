"""A figure or table of the paper: what it claims, and how results are drawn and judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, final

from matplotlib.figure import Figure as Picture

from paper.schema.record import Records

__all__ = ["VERDICT_WORDS", "Figure", "Judgement", "NumberTable", "Verdict"]

Verdict = Literal["reproduced", "partly", "not", "undetected"]

VERDICT_WORDS: Mapping[Verdict, str] = {
    "reproduced": "Reproduced",
    "partly": "Partly reproduced",
    "not": "Not reproduced",
    "undetected": "No difference detected",
}


@final
@dataclass(frozen=True)
class Judgement:
    """Whether a claim held.

    Attributes:
        verdict: `"reproduced"`, `"partly"`, `"not"`, or `"undetected"` where the trials are too few to tell.
        evidence: The numbers that say so, in a sentence or two.
        has_parts: Whether the lines of any part of the claim have run; if not, there is no verdict.
    """

    verdict: Verdict
    evidence: str
    has_parts: bool = True


@final
@dataclass(frozen=True)
class NumberTable:
    """Numbers beside those of the paper, as text.

    Attributes:
        caption: What the table shows.
        header: Names of the columns; the first column names the rows.
        rows: The cells.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@final
@dataclass(frozen=True)
class Figure:
    """One entry of the report.

    Attributes:
        name: Its name on the command line, for example `"fig8"`.
        title: Its heading.
        study: Name of the study whose results it shows.
        problems: The problems that it needs, names of the study.
        methods: The methods that it needs, names of the study.
        claim: What the paper says, in our words.
        notes: What was corrected or differs, one sentence each.
        draw: Makes the picture from results; the report has set colors for a light or a dark page.
        describe: Says in words what the picture shows, for those who cannot see it.
        judge: Says whether the claim held.
        tables: Numbers to print below the picture.
        is_statistical: Whether it needs several trials; if not, the first seed alone is run.
        needs_all: Whether all problems and methods must have run, with the same seeds; if not, lines may have fewer
            trials than others, or none, and comparisons use the seeds that both sides have.
        needed_methods: Those without which nothing can be shown, where others may be missing.
        has_published_values: Whether a line can be judged alone, against numbers that were published.
    """

    name: str
    title: str
    study: str
    problems: tuple[str, ...]
    methods: tuple[str, ...]
    claim: str
    notes: tuple[str, ...]
    draw: Callable[[Records], Picture]
    describe: Callable[[Records], str]
    judge: Callable[[Records], Judgement]
    tables: Callable[[Records], tuple[NumberTable, ...]]
    is_statistical: bool = True
    needs_all: bool = True
    needed_methods: tuple[str, ...] = ()
    has_published_values: bool = False

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Its problems and methods, in pairs."""
        return [(problem, method) for problem in self.problems for method in self.methods]
