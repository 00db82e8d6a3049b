"""Values that optimizers reached against evaluations, for the figures that compare them."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator

from paper.analysis.claims import (
    Check,
    decide,
    is_larger,
    is_no_worse,
    is_similar,
    weigh,
)
from paper.analysis.drawing import draw_medians, legend_below, new_picture
from paper.analysis.statistics import Difference, format_mean, paired_difference
from paper.schema.figure import VERDICT_WORDS, Judgement, NumberTable
from paper.schema.record import Records
from paper.schema.study import Study

__all__ = ["BEST", "RECOMMENDED", "BestValues", "has_recommended", "line_verdicts"]

BEST, RECOMMENDED = "best", "recommended"


@final
@dataclass(frozen=True)
class BestValues:
    """How the outcomes of a study are compared and shown.

    Outcomes have `best`, the largest noise-free value of the points so far, after the initial design and each batch;
    `num_evaluations` at these times; `seconds` of each suggestion; and, where a model recommends a point,
    `recommended`, its noise-free value.

    Attributes:
        study: The study.
        margin: A difference that does not matter.
        optimum: The largest value, drawn as a line; None where it is not known.
        value: What is maximized, in a few words.
        axis: What the horizontal axis counts: `"batches"` or `"evaluations"`.
    """

    study: Study[Any]
    margin: float
    optimum: float | None = None
    value: str = "noise-free value"
    axis: str = "batches"

    def finals(
        self, records: Records, problems: Sequence[str], methods: Sequence[str], *, entry: str = BEST
    ) -> list[float]:
        """The last value of each trial that all of them have, averaged over problems and methods.

        Args:
            records: Results.
            problems: Names of problems.
            methods: Names of methods.
            entry: `"best"` or `"recommended"`.
        """
        pairs = [(problem, method) for problem in problems for method in methods]
        records = records.shared(pairs)
        runs = [records.outcomes(*pair, entry) for pair in pairs]
        return [float(np.mean([run[trial][-1] for run in runs])) for trial in range(len(runs[0]))]

    def compare(
        self,
        records: Records,
        problems: Sequence[str],
        first: Sequence[str],
        second: Sequence[str],
        *,
        entry: str = BEST,
    ) -> Difference | None:
        """Difference of last values between two groups of methods over the trials that all have; None without any."""
        records = records.shared((problem, method) for problem in problems for method in (*first, *second))
        if not records.all:
            return None
        groups = (self.finals(records, problems, methods, entry=entry) for methods in (first, second))
        return paired_difference(*groups)

    def larger(self, what: str, difference: Difference | None) -> Check:
        """Whether a difference is above zero, if there is one; above random points, that is a check of sanity."""
        return is_larger(what, difference, is_sanity="above random" in what)

    def no_worse(self, what: str, difference: Difference | None) -> Check:
        """Whether a difference is above minus the margin, if there is one."""
        return is_no_worse(what, difference, self.margin)

    def similar(self, what: str, difference: Difference | None) -> Check:
        """Whether a difference is within the margin, if there is one."""
        return is_similar(what, difference, self.margin)

    def judge_both(self, records: Records, checks: Callable[[Records, str], Sequence[Check]]) -> Judgement:
        """Judge by the best evaluated point, as the paper does, and say what the recommended one would say.

        Args:
            records: Results.
            checks: Parts of the claim, from results and the entry of outcomes to go by.
        """
        judgement = weigh(checks(records, BEST))
        if not has_recommended(records):
            return judgement
        other = weigh(checks(records, RECOMMENDED))
        words = VERDICT_WORDS[other.verdict].lower()
        return replace(judgement, remark=f"{judgement.remark} By the recommended point ({words}): {other.evidence}")

    def draw(self, records: Records, problem: str, methods: Sequence[str]) -> Picture:
        """Draw medians of the best evaluated and of the recommended value, with intervals where lines are few."""
        entries = [BEST, RECOMMENDED] if has_recommended(records) else [BEST]
        picture = new_picture(1, len(entries), height=4.0)
        for axes, entry in zip(picture.axes, entries, strict=True):
            num_lines = sum(bool(records.of(problem, method)) for method in methods)
            for index, method in enumerate(methods):
                values = records.outcomes(problem, method, entry)
                if values:
                    counts = records.outcome(problem, method)["num_evaluations"]
                    x = range(len(values[0])) if self.axis == "batches" else counts
                    label = f"{self.study.methods[method]} ({len(values)})"
                    draw_medians(axes, x, values, label=label, index=index, num_lines=num_lines)
            if self.optimum is not None:
                axes.axhline(self.optimum, color="0.5", linewidth=1.0, linestyle=":", label="optimum")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel(self.axis)
            axes.set_ylabel(textwrap.fill(self._label(entry), 34))
        legend_below(picture)
        return picture

    def describe(self, records: Records, problem: str, methods: Sequence[str]) -> str:
        """Say what the picture shows."""
        shown = [method for method in methods if records.of(problem, method)]
        counts = records.outcome(problem, shown[0])["num_evaluations"]
        ends = "; ".join(
            f"{self.study.methods[method]} {np.mean(self.finals(records, [problem], [method])):.3g}" for method in shown
        )
        both = ", and that of the recommended point," if has_recommended(records) else ""
        top = "" if self.optimum is None else f" The optimum is {self.optimum:.3g}."
        after = f"means of the best after {counts[-1]} evaluations"
        return f"Best {self.value}{both} against {self.axis}; {after}: {ends}.{top}"

    def table(self, records: Records, problem: str, methods: Sequence[str]) -> NumberTable:
        """The last values, numbers of trials, and the time of a suggestion."""
        shown = [method for method in methods if records.of(problem, method)]
        entries = [BEST, RECOMMENDED] if has_recommended(records) else [BEST]
        rows = []
        for method in shown:
            seconds = [each for run in records.outcomes(problem, method, "seconds") for each in run]
            values = [format_mean(self.finals(records, [problem], [method], entry=entry)) for entry in entries]
            time = f"{np.median(seconds):.2g}" if seconds else "–"
            rows.append((self.study.methods[method], *values, str(len(records.of(problem, method))), time))
        num = records.outcome(problem, shown[0])["num_evaluations"][-1]
        return NumberTable(
            f"Values after {num} evaluations, mean and half a 95 % interval, and median time of a suggestion.",
            ("method", *(self._label(entry) for entry in entries), "trials", "seconds"),
            tuple(rows),
        )

    def verdicts(self, records: Records, problem: str, methods: Sequence[str], *, reference: str) -> NumberTable:
        """What can be said of each line against one of them, corrected for their number.

        Args:
            records: Results.
            problem: Name of the problem.
            methods: Names of methods, the reference among them or not.
            reference: The method that the others are held against.
        """
        others = [method for method in methods if method != reference]
        found = [self.compare(records, [problem], [method], [reference]) for method in others]
        label = self.study.methods[reference]
        return line_verdicts(
            [(self.study.methods[method], difference) for method, difference in zip(others, found, strict=True)],
            f"Each line less {label}: {self.value} at the end, paired by seed, with a 95 % interval.",
        )

    def _label(self, entry: str) -> str:
        return f"best evaluated {self.value}" if entry == BEST else f"{self.value} of the recommended point"


def line_verdicts(lines: Sequence[tuple[str, Difference | None]], caption: str) -> NumberTable:
    """A verdict on each line: better or worse than a reference, or no difference, with the one that would have shown.

    Args:
        lines: Names of lines and their differences from the reference, large ones good; None where they share no trial.
        caption: What is compared.
    """
    checks = [is_larger(name, one) for name, one in lines]
    words = {"holds": "better", "fails": "worse", "missing": "no shared trials"}
    rows = tuple(
        (name, "–" if one is None else str(one), check.if_open if status == "open" else words[status])
        for (name, one), check, status in zip(lines, checks, decide(checks), strict=True)
    )
    return NumberTable(f"{caption} Verdicts are corrected for their number.", ("line", "difference", "verdict"), rows)


def has_recommended(records: Records) -> bool:
    """Whether results have the recommended points; the oldest ones do not."""
    return bool(records.all) and all(RECOMMENDED in record.outcome for record in records.all)
