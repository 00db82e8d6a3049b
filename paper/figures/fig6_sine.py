"""Fig. 6: O-SGPR under-fits a sine, with our remedy as a third row."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from paper.analysis.claims import is_larger, is_no_worse, weigh
from paper.analysis.drawing import draw_band, draw_trials, ink, legend_below, new_picture
from paper.analysis.statistics import format_mean, paired_difference
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records
from paper.studies.sine import STUDY

__all__ = ["FIGURE"]

_PROBLEM = "sine"
_ROWS = {"osgpr-1": "O-SGPR, b = 1", "osgpr-16": "O-SGPR, b = 16", "learner": "streamgp, b = 1"}
# Lines without which the claim is judged all the same.
_OPTIONAL = ("osvgp-1", "osvgp-1-beta", "osvgp-16")

# Half of the standard deviation of the noise: a fit that is worse by less than this does not under-fit.
_SMALL_ERROR = 0.05


def draw(records: Records) -> Picture:
    marks = records.outcome(_PROBLEM, "learner")["marks"]
    columns = len(marks) + 1
    picture = new_picture(len(_ROWS), columns, height=1.9)
    for index, axes in enumerate(picture.axes):
        row, column = divmod(index, columns)
        method, label = list(_ROWS.items())[row]
        axes.tick_params(labelsize=7)
        if column < len(marks):
            _draw_prediction(axes, records, method, column=column)
            axes.set_title(f"T = {marks[column]}" if row == 0 else "", fontsize=8)
            axes.set_xlabel("x" if row == len(_ROWS) - 1 else "", fontsize=8)
            axes.set_ylabel(label if column == 0 else "", fontsize=8)
            axes.tick_params(labelleft=column == 0, labelbottom=row == len(_ROWS) - 1)
        elif method == "learner":
            _draw_errors(axes, records)
        else:
            _draw_traces(axes, records, method)
    legend_below(picture, ncols=5)
    return picture


def _draw_prediction(axes: Axes, records: Records, method: str, *, column: int) -> None:
    outcome = _median_outcome(records, method)
    mean, deviation = np.array(outcome["mean"][column]), np.array(outcome["deviation"][column])
    axes.plot(outcome["inputs"], outcome["targets"], ".", color=ink(), markersize=1.0, alpha=0.35)
    draw_band(axes, outcome["grid"], mean, 2.0 * deviation, label="mean, 2 sd", index=list(_ROWS).index(method))
    points = outcome["points"][column]
    axes.plot(points, np.full(len(points), -1.75), "|", color=ink(), markersize=5, label="points")
    axes.set_ylim(-1.9, 1.6)
    axes.set_xlim(-1.05, 1.05)


def _median_outcome(records: Records, method: str) -> Mapping[str, Any]:
    """The outcome of the seed whose error at the end is the median one."""
    ordered = sorted(records.of(_PROBLEM, method), key=lambda record: record.outcome["rmse"][-1])
    return ordered[(len(ordered) - 1) // 2].outcome


def _draw_traces(axes: Axes, records: Records, method: str) -> None:
    rows = records.outcome(_PROBLEM, method)["trace_rows"]
    for index, (name, label) in enumerate((("residual_trace", "trace 1"), ("lost_trace", "trace 2"))):
        draw_trials(axes, rows, records.outcomes(_PROBLEM, method, name), label=label, index=index + 3)
    axes.set_title("traces of the bound", fontsize=8)
    axes.set_ylim(bottom=0.0)


def _draw_errors(axes: Axes, records: Records) -> None:
    marks = records.outcome(_PROBLEM, "learner")["marks"]
    lines = {**_ROWS, "osgpr-1-small-jitter": "b = 1, jitter 1e-8", "osvgp-1": "O-SVGP, b = 1"}
    lines["osvgp-1-beta"] = "O-SVGP, b = 1, β = 1e-3"
    for index, (method, label) in enumerate(lines.items()):
        values = records.outcomes(_PROBLEM, method, "rmse")
        if values:
            draw_trials(axes, marks, values, label=label, index=index)
    axes.set_yscale("log")
    axes.set_title("RMSE to the truth", fontsize=8)
    axes.set_xlabel("rows", fontsize=8)


def errors(records: Records, method: str, mark: int) -> list[float]:
    """RMSE to the truth at a mark, counted from 0 or back from -1, trial by trial."""
    return [rmse[mark] for rmse in records.outcomes(_PROBLEM, method, "rmse")]


def describe(records: Records) -> str:
    ends = "; ".join(
        f"{label}: {format_mean(errors(records, method, -1), digits=3)}" for method, label in _ROWS.items()
    )
    last = records.outcome(_PROBLEM, "learner")["marks"][-1]
    return (
        "Rows: O-SGPR with one and with 16 rows at a time, and streamgp with one. Columns: predictions of a sine as "
        f"more rows come, then the traces, or errors. Error to the truth after {last} rows: {ends}."
    )


def judge(records: Records) -> Judgement:
    rest = [
        f"of {STUDY.methods[method]} {format_mean(errors(records, method, -1), digits=3)}"
        for method in _OPTIONAL
        if records.of(_PROBLEM, method)
    ]
    records = records.shared((_PROBLEM, method) for method in STUDY.methods if method not in _OPTIONAL)
    alone, together = (errors(records, method, -1) for method in ("osgpr-1", "osgpr-16"))
    lost, residual = (
        [float(np.mean(trace)) for trace in records.outcomes(_PROBLEM, "osgpr-1", name)]
        for name in ("lost_trace", "residual_trace")
    )
    judgement = weigh(
        [
            is_larger("RMSE of O-SGPR with b = 1 less that with b = 16 at the end", paired_difference(alone, together)),
            is_larger(
                "rise of the RMSE with b = 1 from the first to the last mark",
                paired_difference(alone, errors(records, "osgpr-1", 0)),
            ),
            is_larger("trace 2 less trace 1 with b = 1, along the stream", paired_difference(lost, residual)),
            is_no_worse(
                "RMSE of a batch fit less that with b = 16 at the end",
                paired_difference(errors(records, "batch", -1), together),
                _SMALL_ERROR,
            ),
        ]
    )
    small, ours, batch = (
        format_mean(errors(records, method, -1), digits=3) for method in ("osgpr-1-small-jitter", "learner", "batch")
    )
    ends = [f"with jitter 1e-8 {small}", f"of streamgp {ours}", f"of a batch fit {batch}", *rest]
    remedy = f"RMSE at the end {', '.join(ends)}."
    return replace(judgement, remark=f"{judgement.remark} {remedy}")


def tables(records: Records) -> tuple[NumberTable, ...]:
    marks = records.outcome(_PROBLEM, "learner")["marks"]
    rows = tuple(
        (label, *(format_mean(errors(records, method, index), digits=3) for index in range(len(marks))))
        for method, label in STUDY.methods.items()
        if records.of(_PROBLEM, method)
    )
    header = ("method", *(f"T = {mark}" for mark in marks))
    return (NumberTable("RMSE to the truth, mean and half a 95 % interval; the paper gives no numbers", header, rows),)


FIGURE = Figure(
    name="fig6",
    title="Fig. 6: O-SGPR under-fits a sine",
    study="sine",
    problems=(_PROBLEM,),
    methods=tuple(STUDY.methods),
    claim=(
        "O-SGPR with one row at a time progressively under-fits, with trace 2 as the larger part; with 16 rows at a "
        "time it does not."
    ),
    notes=(
        "The paper's code counts the statistics of the last batch twice and leaves out how new data and old points are "
        "coupled; here the bound is the right one.",
        "Lengthscale and noise start at softplus(0) = 0.693, where GPyTorch starts; from one, as this page had it "
        "first, O-SGPR did not under-fit. Pictures are of the seed with the median error. With b = 16 one of 20 runs "
        "learns nothing from its first rows (RMSE 0.66) and stays there, which keeps the last part undecided; the "
        "median is 0.044.",
        "Its jitter of 1e-3 is kept for the first two methods. With each block it takes some of what was known: with "
        "1e-8 and nothing else changed the same method is in the table.",
        "The first fit is on the collapsed bound, not on the uncollapsed one.",
        "O-SVGP follows the uncollapsed bound, whose best belief is that of O-SGPR, by one step of Adam a row with the "
        "rates of the paper's code; with divergences weighted by 1e-3 as in later work.",
        "The third row is streamgp's learner: rows are absorbed in closed form, and hyperparameters are learned anew "
        "from the latest rows when their number has doubled.",
    ),
    draw=draw,
    describe=describe,
    judge=judge,
    tables=tables,
    needs_all=False,
    needed_methods=tuple(method for method in STUDY.methods if method not in _OPTIONAL),
)
