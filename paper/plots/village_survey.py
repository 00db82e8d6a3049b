"""Accuracy and error against visited villages, for the figures that show them."""

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from paper.analysis.claims import is_larger, weigh
from paper.analysis.drawing import draw_trials
from paper.analysis.statistics import format_mean, paired_difference
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records
from paper.studies.hotspots import STUDY

__all__ = [
    "METHODS",
    "NOTES",
    "PROBLEM",
    "PUBLISHED",
    "draw_curves",
    "draw_gains",
    "judge_differences",
    "list_ends",
    "marks_of",
    "survey_figure",
    "survey_table",
]

PROBLEM = "civ"
METHODS = ("svgp-entropy", "svgp-response", "svgp-random", "forest-adaptive", "forest-random")
# Accuracy, mean squared error, and seconds of a step after 199 villages of the same task, from 50 seeds on GPUs.
PUBLISHED = {
    "published: random": (0.8467, 0.01664, None),
    "published: the paper's method": (0.8667, 0.01391, 84.6),
    "published: Dual-GP": (0.8719, 0.01193, 62.1),
}
NOTES = (
    "Outcomes are counts of 100 people, drawn once for each trial. The six covariates are of climate and terrain; the "
    "paper calls them demographic.",
    "The gain of a village is the mean over 16 outcomes by quadrature of the reduction of thresholded entropy over all "
    "villages that are left, in closed form; the paper samples both.",
    "The sparse GP is fitted by L-BFGS instead of Adam with rate 0.01, with the whole divergence (β = 1, not 0.1). "
    "Every visited village is an inducing point, as in the paper. The kernel is a Matérn-1/2 of all inputs plus one of "
    "the coordinates, in place of a Matérn-3/2: prevalence changes abruptly from village to village. It was chosen on "
    "these villages, with other random choices of the first ones.",
    "The predicted prevalence is the expected one, not the sigmoid of the latent mean.",
    "The response variance, a rule that the paper does not have, goes where an observation explains most of two "
    "variances over all villages that are left: that of prevalence, and that of being a hotspot.",
    "The forest is scikit-learn's and the kriging a sparse GP with an inducing point at every visited village, in "
    "place of ranger and spaMM; the logit of the forest is its only covariate.",
    "A village is called a hotspot where that is more probable than not.",
)


def survey_figure(
    name: str,
    title: str,
    entry: str,
    *,
    claim: str,
    caption: str,
    draw: Callable[[Records], Picture],
    describe: Callable[[Records], str],
    judge: Callable[[Records], Judgement],
) -> Figure:
    """A figure of one entry of the outcomes, with a table of it.

    Args:
        name: Its name on the command line.
        title: Its heading.
        entry: The entry.
        claim: What the paper says, in our words.
        caption: What the table shows.
        draw: Makes the picture.
        describe: Says what it shows.
        judge: Says whether the claim held.
    """
    return Figure(
        name=name,
        title=title,
        study="hotspots",
        problems=(PROBLEM,),
        methods=METHODS,
        claim=claim,
        notes=NOTES,
        draw=draw,
        describe=describe,
        judge=judge,
        tables=lambda records: (survey_table(records, entry, caption=caption),),
    )


def marks_of(records: Records) -> list[int]:
    """Places in the curves of the start, the middle, and the last but one village, 199 of the paper's 200."""
    n = len(_numbers(records))
    return [0, (n - 1) // 2, max(n - 2, 0)]


def _numbers(records: Records) -> list[int]:
    """Numbers of visited villages, which all runs share."""
    return records.all[0].outcome["num_villages"]


def draw_curves(axes: Axes, records: Records, name: str, *, label: str) -> None:
    """Draw mean and half a 95 % interval of one entry of the outcomes against visited villages."""
    x = _numbers(records)
    for index, method in enumerate(METHODS):
        draw_trials(axes, x, records.outcomes(PROBLEM, method, name), label=STUDY.methods[method], index=index)
    axes.set_xlabel("visited villages")
    axes.set_ylabel(label)


def draw_gains(axes: Axes, records: Records, name: str, *, label: str, sign: float) -> None:
    """Draw what choosing gains over random choice, trial by trial.

    Args:
        axes: Where to draw.
        records: Results.
        name: Entry of the outcomes.
        label: Name of the axis.
        sign: 1 where larger is better, −1 where smaller is.
    """
    x = _numbers(records)
    for first, second, model, index in (
        ("svgp-entropy", "svgp-random", "SVGP, hotspot entropy", 0),
        ("svgp-response", "svgp-random", "SVGP, response variance", 1),
        ("forest-adaptive", "forest-random", "forest and kriging", 3),
    ):
        chosen, random = (np.array(records.outcomes(PROBLEM, method, name)) for method in (first, second))
        draw_trials(axes, x, list(sign * (chosen - random)), label=model, index=index)
    axes.axhline(0.0, color="0.5", linewidth=1.0)
    axes.set_xlabel("visited villages")
    axes.set_ylabel(label)


def judge_differences(records: Records, name: str, claims: Mapping[str, tuple[str, str, int]]) -> Judgement:
    """Weigh claims that one method has larger values than another, trial by trial.

    Args:
        records: Results.
        name: Entry of the outcomes.
        claims: By what is claimed, the method that should have larger values, the other one, and a place of the curves.
    """
    checks = []
    for claim, (first, second, mark) in claims.items():
        values = ([curve[mark] for curve in records.outcomes(PROBLEM, method, name)] for method in (first, second))
        checks.append(is_larger(claim, paired_difference(*values)))
    return weigh(checks)


def list_ends(records: Records, name: str, *, digits: int) -> str:
    """Say the means over trials at the last mark, and after how many villages that is."""
    mark = marks_of(records)[-1]
    means = {method: np.mean([curve[mark] for curve in records.outcomes(PROBLEM, method, name)]) for method in METHODS}
    ends = ", ".join(f"{STUDY.methods[method]} {mean:.{digits}f}" for method, mean in means.items())
    return f"after {_numbers(records)[mark]} villages: {ends}."


def survey_table(records: Records, name: str, *, caption: str, methods: tuple[str, ...] = METHODS) -> NumberTable:
    """One entry of the outcomes at the marks, and seconds of a step, beside the published numbers."""
    numbers, marks = _numbers(records), marks_of(records)
    rows = []
    for method in methods:
        curves = np.array(records.outcomes(PROBLEM, method, name))
        cells = [format_mean(curves[:, mark].tolist(), digits=4) for mark in marks]
        seconds = (
            np.mean(np.concatenate(records.outcomes(PROBLEM, method, entry)))
            for entry in ("fit_seconds", "choice_seconds")
        )
        rows.append((STUDY.methods[method], *cells, *(f"{value:.2g}" for value in seconds)))
    for label, (accuracy, error, step) in PUBLISHED.items():
        value = f"{accuracy:.4f}" if name == "accuracy" else f"{error:.5f}"
        rows.append((label, "", "", value, "", "" if step is None else f"{step:g} in all"))
    header = ("method", *(f"{numbers[mark]} villages" for mark in marks), "fit, s", "look-ahead, s")
    return NumberTable(caption, header, tuple(rows))
