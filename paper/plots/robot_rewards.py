"""Rewards of linear policies against calls, beside published curves, for the figures that show them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from paper.analysis.claims import Check, is_missing, is_no_worse, is_similar, weigh
from paper.analysis.drawing import PALETTE, draw_medians, legend_below, new_picture
from paper.analysis.statistics import Difference, median_and_interval, paired_difference
from paper.plots.best_values import BestValues
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records
from paper.studies.robots import STUDY

__all__ = ["METHODS", "RobotRewards"]

METHODS = tuple(STUDY.methods)
NOTES = (
    "A call is the mean of three episodes, and the best of them so far is drawn, as in the published figures. The "
    "largest of noisy means is too large; the table also has what the best policy earns when it is played again.",
    "Published curves are those of the corrected figure of LA-MCTS, read off; its authors ran Gymnasium's predecessor, "
    "here robots are made from version 5 of the environments. ARS is run again.",
    "Every line has all of its seeds. Each policy on the way of ARS is played three times, which counts as a call, and "
    "it scales observations by what it has seen, whatever the problem.",
    "LA-MCTS is written from its description: 2-means and a cubic support vector machine cut the box, and a trust "
    "region starts from 30 points of the leaf and may leave it. Ours also knows the samples of that leaf, and its "
    "borders are hardened until they part samples: with the published width and penalty, the first tree of the hopper "
    "is not cut at all; on the hopper it forgets the samples. Two quick trials of the swimmer with an SVGP and TS, "
    "seeds 0 and 1, ran before the change of borders.",
    "The look-ahead chooses from the conditioned model. In the paper's code it chooses from the model before, so that "
    "its lines with and without look-ahead differ by chance alone.",
    "At the quick scale SVGPs are fitted to the evidence bound with an inducing point at every input, so that their "
    "belief is exact; the paper's are fitted to the predictive likelihood, as at the full scale.",
)
_TREE = ("svgp-ts", "svgp-lts", "exact-ts", "exact-lts")


@final
@dataclass(frozen=True)
class RobotRewards:
    """How the results of a robot are judged and shown.

    Attributes:
        problem: The problem with the scaling of published curves.
        other: The one with a running filter.
        published: By method, rewards that were published, after so many calls.
        reading: By how much these may have been misread.
        threshold: Above which the environment counts as solved.
    """

    problem: str
    other: str
    published: Mapping[str, Mapping[int, float]]
    reading: float
    threshold: float

    def figure(self, name: str, title: str, *, claim: str, notes: tuple[str, ...]) -> Figure:
        """The figure of the robot.

        Args:
            name: Its name on the command line.
            title: Its heading.
            claim: What the paper says, in our words.
            notes: What differs for this robot, besides what differs for all.
        """
        return Figure(
            name=name,
            title=title,
            study="robots",
            problems=(self.problem, self.other),
            methods=METHODS,
            claim=claim,
            notes=(*NOTES, *notes),
            draw=self.draw,
            describe=self.describe,
            judge=self.judge,
            tables=self.tables,
            needs_all=False,
            has_published_values=True,
        )

    @property
    def values(self) -> BestValues:
        """Comparisons of last values; a difference as small as a misreading does not matter."""
        return BestValues(STUDY, margin=self.reading, value="reward", axis="evaluations")

    def judge(self, records: Records) -> Judgement:
        """Hold our line against the published one, and the lines against each other."""
        compare, values = self._compare, self.values
        checks = [
            self._against_published(records, "svgp-ts", "LA-MCTS with an SVGP no worse than published"),
            values.larger("LA-MCTS with an SVGP above random", compare(records, "svgp-ts", "random")),
            values.larger("LA-MCTS with an SVGP above CMA-ES", compare(records, "svgp-ts", "cma")),
            values.larger("SVGP, LTS above TS", compare(records, "svgp-lts", "svgp-ts")),
            values.larger("LTS, SVGP above exact GP", compare(records, "svgp-lts", "exact-lts")),
            values.no_worse("TS, SVGP as good as exact GP", compare(records, "svgp-ts", "exact-ts")),
        ]
        # A control, which says nothing of the claim.
        control = self._against_published(records, "random", "random points as published", is_two_sided=True)
        judgement = weigh(checks)
        return replace(judgement, remark=f"{judgement.remark} Control, {weigh([control]).evidence}")

    def draw(self, records: Records) -> Picture:
        """Draw medians and their intervals, a column for each scaling that has run, with published points."""
        problems = [each for each in (self.problem, self.other) if self._shown(records, each)]
        picture = new_picture(1, len(problems), height=4.0)
        for axes, problem in zip(picture.axes, problems, strict=True):
            for method in self._shown(records, problem):
                runs = records.outcomes(problem, method, "best")
                x = records.outcome(problem, method)["num_evaluations"]
                num_lines = len(self._shown(records, problem))
                label = f"{STUDY.methods[method]} ({len(runs)})"
                draw_medians(axes, x, runs, label=label, index=METHODS.index(method), num_lines=num_lines)
            if problem == self.problem:
                self._mark_published(axes, x[-1])
            axes.set_title(STUDY.problems[problem].split(", ")[-1], fontsize="small")
            axes.set_xlabel("calls")
        picture.axes[0].set_ylabel("best reward")
        legend_below(picture)
        return picture

    def describe(self, records: Records) -> str:
        """Say what the picture shows."""
        parts = []
        for problem in (self.problem, self.other):
            for method in self._shown(records, problem):
                last = [run[-1] for run in records.outcomes(problem, method, "best")]
                parts.append(f"{problem}, {STUDY.methods[method]} {np.median(last):.0f}")
        return (
            "Best mean reward of three episodes against calls, medians with intervals; crosses are published values. "
            f"Medians at the end: {'; '.join(parts)}."
        )

    def tables(self, records: Records) -> tuple[NumberTable, ...]:
        """Rewards beside the published ones, and a verdict on each line, for each scaling."""
        tables = []
        for problem in (self.problem, self.other):
            if shown := self._shown(records, problem):
                tables.append(self._finals(records, problem, shown))
                tables.append(self.values.verdicts(records, problem, METHODS, reference="random"))
        return tuple(tables)

    def _finals(self, records: Records, problem: str, methods: Sequence[str]) -> NumberTable:
        count = records.outcome(problem, methods[0])["num_evaluations"][-1]
        rows = []
        for method in methods:
            outcomes = [record.outcome for record in records.of(problem, method)]
            median, low, high = (float(each) for each in median_and_interval([one["best"][-1] for one in outcomes]))
            again = [one["replayed"] for one in outcomes if one["replayed"] is not None]
            known = self.published.get(self._family(method), {}).get(count) if problem == self.problem else None
            rows.append(
                (
                    STUDY.methods[method],
                    f"{median:.0f} [{low:.0f}, {high:.0f}]",
                    "–" if known is None else f"{known:.0f}",
                    f"{np.median(again):.0f}" if again else "–",
                    str(len(outcomes)),
                    str(sum(len(one["failures"]) for one in outcomes)),
                    f"{np.median([sum(one['seconds']) / one['num_evaluations'][-1] for one in outcomes]):.2g}",
                )
            )
        return NumberTable(
            f"{STUDY.problems[problem]}: best reward after {count} calls, median and its interval (the range of all "
            "trials where there are fewer than six).",
            ("method", "best reward", "published", "played again", "trials", "failures", "seconds per suggestion"),
            tuple(rows),
        )

    def _against_published(self, records: Records, method: str, what: str, *, is_two_sided: bool = False) -> Check:
        found = records.of(self.problem, method)
        count = found[0].outcome["num_evaluations"][-1] if found else None
        known = self.published[self._family(method)].get(count) if count is not None else None
        if known is None:
            return is_missing(what)
        last = [record.outcome["best"][-1] for record in found]
        difference = paired_difference(last, [known] * len(last))
        check = is_similar if is_two_sided else is_no_worse
        return check(f"{what} ({known:.0f})", difference, self.reading)

    def _compare(self, records: Records, first: str, second: str) -> Difference | None:
        return self.values.compare(records, [self.problem], [first], [second])

    def _mark_published(self, axes: Axes, last: int) -> None:
        for family, index in (("lamcts", 0), ("cma", METHODS.index("cma")), ("random", METHODS.index("random"))):
            points = {count: value for count, value in self.published[family].items() if count <= last}
            color = PALETTE[index % len(PALETTE)]
            axes.plot(list(points), list(points.values()), color=color, linestyle="", marker="x")
        axes.axhline(self.threshold, color="0.5", linewidth=1.0, linestyle="--")

    def _shown(self, records: Records, problem: str) -> list[str]:
        return [method for method in METHODS if records.of(problem, method)]

    def _family(self, method: str) -> str:
        return "lamcts" if method in _TREE else method
