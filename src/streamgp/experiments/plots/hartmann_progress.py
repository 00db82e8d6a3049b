"""Best values on Hartmann6 against batches, for the figures that show them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator

from streamgp.experiments.analysis.claims import Check, is_larger, is_missing, is_no_worse, weigh
from streamgp.experiments.analysis.drawing import draw_trials, new_picture
from streamgp.experiments.analysis.statistics import Difference, format_mean, paired_difference
from streamgp.experiments.schema.figure import VERDICT_WORDS, Judgement, NumberTable
from streamgp.experiments.schema.record import Records
from streamgp.experiments.studies.hartmann import STUDY

__all__ = [
    "BEST",
    "MARGIN",
    "NOTES",
    "RECOMMENDED",
    "check_larger",
    "check_no_worse",
    "compare",
    "describe_progress",
    "draw_progress",
    "final_table",
    "final_values",
    "has_recommended",
    "judge_both",
]

OPTIMUM = 3.32237
BEST, RECOMMENDED = "best", "recommended"
_LABELS = {BEST: "best evaluated noise-free feasible value", RECOMMENDED: "noise-free value of the recommended point"}
# Of two methods that are called alike: a tenth of the optimum.
MARGIN = 0.33
# What all figures and tables of Hartmann6 share.
NOTES = (
    "The exact GPs are sparse ones with an inducing point at every input, which are the same to rounding and hundreds "
    "of times faster in knowledge gradient; the SVGPs have at most 25 inducing points, and are the same until then.",
    "qNEI and qEI are BoTorch's logarithmic forms of the same functions; knowledge gradient has the exact mean as its "
    "inner value.",
    "Outcomes are standardised, and fits go on from the last one until the data has doubled, by L-BFGS on the "
    "collapsed bound; the paper does neither and fits anew with Adam. Kernel, priors and known noise variance are "
    "the paper's.",
    "Judged is the largest noise-free value of feasible points that were evaluated, as in the paper. Knowledge "
    "gradient plans for the point that the model would recommend, which it need not evaluate: where runs have recorded "
    "it, it is shown beside, and what it would say of each comparison is told after the verdict.",
    "The constraint is not active at the optimum of 3.322.",
    "Loops amplify rounding: the same seed repeats bit for bit on one machine with the same versions, and need not on "
    "another processor. Each unit records both.",
)


def final_values(
    records: Records, problems: Sequence[str], methods: Sequence[str], *, entry: str = BEST
) -> list[float]:
    """The last value of each trial that all of them have, averaged over problems and methods.

    Args:
        records: Results.
        problems: Names of problems.
        methods: Names of methods.
        entry: `"best"`, the best evaluated point, or `"recommended"`.
    """
    pairs = [(problem, method) for problem in problems for method in methods]
    records = records.shared(pairs)
    runs = [records.outcomes(*pair, entry) for pair in pairs]
    return [float(np.mean([run[trial][-1] for run in runs])) for trial in range(len(runs[0]))]


def has_recommended(records: Records) -> bool:
    """Whether results have the recommended points; the oldest ones do not."""
    return bool(records.all) and all(RECOMMENDED in record.outcome for record in records.all)


def compare(
    records: Records, problems: Sequence[str], first: Sequence[str], second: Sequence[str], *, entry: str = BEST
) -> Difference | None:
    """The difference of last values between two groups of methods over the trials that all have; None without any."""
    records = records.shared((problem, method) for problem in problems for method in (*first, *second))
    if not records.all:
        return None
    groups = (final_values(records, problems, methods, entry=entry) for methods in (first, second))
    return paired_difference(*groups)


def check_larger(what: str, difference: Difference | None) -> Check:
    """Whether a difference is above zero, if there is one."""
    return is_missing(what) if difference is None else is_larger(what, difference)


def check_no_worse(what: str, difference: Difference | None) -> Check:
    """Whether a difference is above minus the margin, if there is one."""
    return is_missing(what) if difference is None else is_no_worse(what, difference, MARGIN)


def judge_both(records: Records, checks: Callable[[Records, str], Sequence[Check]]) -> Judgement:
    """Judge by the best evaluated point, as the paper does, and say what the recommended one would say.

    Args:
        records: Results.
        checks: Parts of the claim, from results and the entry of outcomes to go by.
    """
    judgement = weigh(checks(records, BEST))
    if not has_recommended(records):
        return judgement
    other = weigh(checks(records, RECOMMENDED))
    return replace(
        judgement,
        evidence=f"{judgement.evidence} By the recommended point ({VERDICT_WORDS[other.verdict].lower()}): "
        f"{other.evidence}",
    )


def draw_progress(records: Records, problem: str, methods: Sequence[str]) -> Picture:
    """Draw mean and interval of the best evaluated and of the recommended value against batches."""
    entries = [BEST, RECOMMENDED] if has_recommended(records) else [BEST]
    picture = new_picture(1, len(entries), height=4.0)
    for axes, entry in zip(picture.axes, entries, strict=True):
        for index, method in enumerate(methods):
            values = records.outcomes(problem, method, entry)
            if values:
                label = f"{STUDY.methods[method]} ({len(values)})"
                draw_trials(axes, range(len(values[0])), values, label=label, index=index)
        axes.axhline(OPTIMUM, color="0.5", linewidth=1.0, linestyle=":", label="optimum")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("batches")
        axes.set_ylabel(_LABELS[entry])
    picture.axes[0].legend(ncols=2 if len(entries) == 1 else 1, fontsize="small")
    return picture


def describe_progress(records: Records, problem: str, methods: Sequence[str]) -> str:
    """Say what the picture shows."""
    shown = [method for method in methods if records.of(problem, method)]
    num_batches = len(records.outcomes(problem, shown[0], BEST)[0]) - 1
    ends = "; ".join(
        f"{STUDY.methods[method]} {np.mean(final_values(records, [problem], [method])):.2f}" for method in shown
    )
    both = ", and the value of the recommended point," if has_recommended(records) else ""
    return (
        f"Best value{both} against batches; mean best values after {num_batches} batches: {ends}. The optimum is 3.32."
    )


def final_table(records: Records, problem: str, methods: Sequence[str]) -> NumberTable:
    """The last values, numbers of trials, and the time of a suggestion."""
    shown = [method for method in methods if records.of(problem, method)]
    entries = [BEST, RECOMMENDED] if has_recommended(records) else [BEST]
    rows = []
    for method in shown:
        seconds = np.concatenate(records.outcomes(problem, method, "seconds"))
        values = [format_mean(final_values(records, [problem], [method], entry=entry)) for entry in entries]
        num_trials = str(len(records.of(problem, method)))
        rows.append((STUDY.methods[method], *values, num_trials, f"{np.median(seconds):.2g}"))
    num = records.outcomes(problem, shown[0], "num_evaluations")[0][-1]
    return NumberTable(
        f"Values after {num} evaluations, mean and half a 95 % interval, and median time of a suggestion.",
        ("method", *(_LABELS[entry] for entry in entries), "trials", "seconds"),
        tuple(rows),
    )
