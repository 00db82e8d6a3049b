"""A figure or table of the paper: what it claims, and how results are drawn and judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, final

from matplotlib.figure import Figure as Picture

from paper.schema.record import Records

__all__ = ["VERDICT_WORDS", "Figure", "Judgement", "NumberTable", "Part", "Verdict"]

Verdict = Literal["reproduced", "partly", "not", "against", "undetected"]

VERDICT_WORDS: Mapping[Verdict, str] = {
    "reproduced": "Reproduced",
    "partly": "Partly reproduced",
    "not": "Not reproduced",
    "against": "Points the other way",
    "undetected": "No difference detected",
}


@final
@dataclass(frozen=True)
class Part:
    """A part of a claim and what the numbers say of it.

    Attributes:
        what: What was compared.
        words: What the numbers say: that it holds, fails, or why nobody can tell.
        status: The same in a word: `"holds"`, `"fails"`, `"open"` or `"missing"`.
        is_sanity: Whether it only shows that nothing is broken; the verdict does not rest on it.
        effect: The difference; None where there is none.
        low: Lower end of its 95 % interval.
        high: Upper end.
        bound: What the difference must exceed for the part to hold; its own negative too, if it is to be within.
        num_trials: Number of independent seeds.
    """

    what: str
    words: str
    status: str
    is_sanity: bool = False
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    bound: float = 0.0
    num_trials: int | None = None


@final
@dataclass(frozen=True)
class Judgement:
    """Whether a claim held.

    Attributes:
        verdict: `"reproduced"`, `"partly"`, `"not"`; `"against"` where no part is told from chance once corrected for
            their number, but each alone points the other way; `"undetected"` where the trials are too few to tell.
        remark: What else is to be said, in a sentence or two.
        parts: The parts of the claim.
        has_parts: Whether the lines of any part of the claim have run; if not, there is no verdict.
    """

    verdict: Verdict
    remark: str
    parts: tuple[Part, ...] = ()
    has_parts: bool = True

    @property
    def evidence(self) -> str:
        """The numbers that say so, as text."""
        parts = "; ".join(f"{part.what} ({part.words})" for part in self.parts)
        return f"{parts}. {self.remark}".strip() if parts else self.remark

    @property
    def num_trials(self) -> tuple[int, int] | None:
        """Least and most seeds of the parts on which the verdict rests; None where nothing is left to chance."""
        counts = [part.num_trials for part in self.parts if part.num_trials is not None and not part.is_sanity]
        return (min(counts), max(counts)) if counts else None


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
