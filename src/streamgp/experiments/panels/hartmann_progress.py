"""Best values on Hartmann6 against batches, for the figures that show them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator

from streamgp.experiments.drawing import draw_trials, new_picture
from streamgp.experiments.figure import NumberTable
from streamgp.experiments.record import Records
from streamgp.experiments.statistics import Difference, format_mean, paired_difference
from streamgp.experiments.studies.hartmann import STUDY

__all__ = ["MARGIN", "NOTES", "compare", "describe_progress", "draw_progress", "final_table", "final_values"]

OPTIMUM = 3.32237
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
    "Reported is the largest noise-free value of feasible points that were evaluated, as in the paper; knowledge "
    "gradient looks for points to recommend, which it need not evaluate. The constraint is not active at the "
    "optimum of 3.322.",
)


def final_values(records: Records, problems: Sequence[str], methods: Sequence[str]) -> list[float]:
    """The last best value of each trial, averaged over problems and methods."""
    runs = [records.outcomes(problem, method, "best") for problem in problems for method in methods]
    return [float(np.mean([run[trial][-1] for run in runs])) for trial in range(len(runs[0]))]


def compare(records: Records, problems: Sequence[str], first: Sequence[str], second: Sequence[str]) -> Difference:
    """The difference of last best values between two groups of methods, trial by trial."""
    return paired_difference(final_values(records, problems, first), final_values(records, problems, second))


def draw_progress(records: Records, problem: str, methods: Sequence[str]) -> Picture:
    """Draw mean and two standard errors of the best value against batches."""
    picture = new_picture(height=4.0)
    axes = picture.axes[0]
    for index, method in enumerate(methods):
        best = records.outcomes(problem, method, "best")
        draw_trials(axes, range(len(best[0])), best, label=STUDY.methods[method], index=index)
    axes.axhline(OPTIMUM, color="0.5", linewidth=1.0, linestyle=":", label="optimum")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("batches")
    axes.set_ylabel("best noise-free feasible value")
    axes.legend(ncols=2)
    return picture


def describe_progress(records: Records, problem: str, methods: Sequence[str]) -> str:
    """Say what the picture shows."""
    num_batches = len(records.outcomes(problem, methods[0], "best")[0]) - 1
    ends = "; ".join(
        f"{STUDY.methods[method]} {np.mean(final_values(records, [problem], [method])):.2f}" for method in methods
    )
    return f"Best value against batches; mean values after {num_batches} batches: {ends}. The optimum is 3.32."


def final_table(records: Records, problem: str, methods: Sequence[str]) -> NumberTable:
    """The last best values, and the time of a suggestion."""
    rows = []
    for method in methods:
        seconds = np.concatenate(records.outcomes(problem, method, "seconds"))
        values = format_mean(final_values(records, [problem], [method]))
        rows.append((STUDY.methods[method], values, f"{np.median(seconds):.2g}"))
    num = records.outcomes(problem, methods[0], "num_evaluations")[0][-1]
    return NumberTable(
        f"Best value after {num} evaluations, mean and two standard errors, and median time of a suggestion.",
        ("method", "best value", "seconds"),
        tuple(rows),
    )
