"""Fig. 2: which inducing points to keep on the protein data."""

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure as Picture

from paper.analysis.claims import is_larger, weigh
from paper.analysis.drawing import draw_trials, ink, legend_below, new_picture
from paper.analysis.statistics import Difference, format_mean, paired_difference
from paper.plots.best_values import line_verdicts
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records
from paper.studies.protein import STUDY

__all__ = ["FIGURE"]

_PROBLEM = "protein"


def draw(records: Records) -> Picture:
    picture = new_picture(1, 2, height=3.2)
    errors, gaps = picture.axes
    seen = records.outcome(_PROBLEM, "pivoted")["num_seen"]
    pivoted = np.array(records.outcomes(_PROBLEM, "pivoted", "rmse"))
    for index, (method, label) in enumerate(STUDY.methods.items()):
        rmse = np.array(records.outcomes(_PROBLEM, method, "rmse"))
        if not len(rmse):
            continue
        draw_trials(errors, seen, list(rmse), label=label, index=index)
        if method in ("resample", "fixed") and len(rmse) == len(pivoted):
            draw_trials(gaps, seen, list(rmse - pivoted), label=f"{label} less pivoted", index=index)
    gaps.axhline(0.0, color=ink(), linewidth=0.8)
    errors.set_ylabel("test RMSE (standard deviations)")
    gaps.set_ylabel("difference of test RMSE, by trial")
    for axes in picture.axes:
        axes.set_xlabel("rows of the stream")
    legend_below(picture)
    return picture


def final_difference(records: Records, method: str) -> Difference:
    """RMSE of a method less that of pivoted Cholesky, at the end, over the trials that both have."""
    records = records.shared([(_PROBLEM, method), (_PROBLEM, "pivoted")])
    first, second = (_final(records, each) for each in (method, "pivoted"))
    return paired_difference(first, second)


def average_difference(records: Records, method: str) -> Difference:
    """The same, averaged along the stream."""
    records = records.shared([(_PROBLEM, method), (_PROBLEM, "pivoted")])
    first, second = (
        [float(np.mean(rmse[1:])) for rmse in records.outcomes(_PROBLEM, each, "rmse")] for each in (method, "pivoted")
    )
    return paired_difference(first, second)


def _final(records: Records, method: str) -> list[float]:
    return [rmse[-1] for rmse in records.outcomes(_PROBLEM, method, "rmse")]


def describe(records: Records) -> str:
    ends = ", ".join(
        f"{label} {format_mean(_final(records, method), digits=3)}"
        for method, label in STUDY.methods.items()
        if records.of(_PROBLEM, method)
    )
    start = format_mean([rmse[0] for rmse in records.outcomes(_PROBLEM, "pivoted", "rmse")], digits=3)
    return f"Test error against rows seen, and its difference to pivoted Cholesky. It goes from {start} to: {ends}."


def judge(records: Records) -> Judgement:
    checks = []
    is_there = bool(records.of(_PROBLEM, "resample"))
    for what, difference in (
        ("RMSE of resampling less that of pivoted Cholesky at the end", final_difference),
        ("averaged along the stream", average_difference),
    ):
        checks.append(is_larger(what, difference(records, "resample") if is_there else None))
    judgement = weigh(checks)
    others = {"fixed": "Fixed points", "printed": "Points by the weights that the paper prints"}
    remarks = [
        f"{words} less pivoted Cholesky at the end: {final_difference(records, method)}."
        for method, words in others.items()
        if records.of(_PROBLEM, method)
    ]
    return replace(judgement, remark=" ".join((judgement.remark, *remarks)))


def tables(records: Records) -> tuple[NumberTable, ...]:
    rows = tuple(
        (
            label,
            format_mean([rmse[0] for rmse in records.outcomes(_PROBLEM, method, "rmse")], digits=3),
            format_mean(_final(records, method), digits=3),
        )
        for method, label in STUDY.methods.items()
        if records.of(_PROBLEM, method)
    )
    header = ("line", "before the stream", "at the end")
    values = NumberTable("Test RMSE, mean and half a 95 % interval; the paper gives no numbers.", header, rows)
    lines = [
        (label, final_difference(records, method).reversed if records.of(_PROBLEM, method) else None)
        for method, label in STUDY.methods.items()
        if method != "pivoted"
    ]
    caption = "RMSE of pivoted Cholesky less that of each line at the end, paired by seed, with a 95 % interval."
    return values, line_verdicts(lines, caption)


FIGURE = Figure(
    name="fig2",
    title="Fig. 2: inducing points on protein",
    study="protein",
    problems=(_PROBLEM,),
    methods=tuple(STUDY.methods),
    claim="Inducing points by pivoted Cholesky are clearly better than resampled ones.",
    notes=(
        "The paper's baseline never resamples: it keeps the points and moves them by gradients. Here each row replaces "
        "a random point, and the belief is carried over in closed form.",
        "Old points count with the geometric mean of what is known there and of a row's precision; as printed, with "
        "what is known there alone.",
        "Rows are absorbed in closed form; hyperparameters are those of the first fit, but for the line with refits, "
        "which makes its own first fit of the same rows.",
        "O-SVGP starts from the same fit, and makes a step of Adam at rate 1e-3 on the uncollapsed streaming bound for "
        "each row: kernel, noise, inducing points and belief. Its variant weighs all divergences by 1e-3.",
        "The kernel is Matérn-5/2 with a lengthscale for each input, as printed; the paper's code takes an RBF.",
    ),
    draw=draw,
    describe=describe,
    judge=judge,
    tables=tables,
    needs_all=False,
    needed_methods=("pivoted",),
)
