"""Fig. 7: an exchange rate day by day, with resampled points and with pivoted Cholesky."""

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from paper.analysis.claims import is_larger, is_met, weigh
from paper.analysis.drawing import draw_band, draw_trials, ink, legend_below, new_picture
from paper.analysis.statistics import format_mean, mean_and_error, paired_difference
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records
from paper.studies.exchange_rates import STUDY

__all__ = ["FIGURE"]

_PROBLEM = "cad"
_ROWS = ("resample", "pivoted")
_INDEX = {"resample": 1, "pivoted": 0, "fixed": 2}
# The rise of the error on the first days that is taken for forgetting nothing, in standard deviations of the rate.
_SMALL_RISE = 0.25


def draw(records: Records) -> Picture:
    marks = records.outcome(_PROBLEM, "pivoted")["marks"]
    columns = len(marks) + 1
    picture = new_picture(len(_ROWS), columns, height=2.5)
    for index, axes in enumerate(picture.axes):
        row, column = divmod(index, columns)
        axes.tick_params(labelsize=7)
        if column < len(marks):
            _draw_series(axes, records, _ROWS[row], column=column)
            axes.set_title(f"t = {marks[column]}" if row == 0 else "", fontsize=9)
            axes.set_xlabel("scaled time" if row else "", fontsize=8)
            axes.set_ylabel(f"scaled rate, {STUDY.methods[_ROWS[row]]}" if column == 0 else "", fontsize=8)
        else:
            name, title = (("rmse_first", "RMSE, first days"), ("rmse_all", "RMSE, all days so far"))[row]
            _draw_errors(axes, records, name)
            axes.set_title(title, fontsize=9)
            axes.set_xlabel("days seen" if row else "", fontsize=8)
    legend_below(picture)
    return picture


def _draw_series(axes: Axes, records: Records, method: str, *, column: int) -> None:
    outcome = records.outcome(_PROBLEM, method)
    seen = outcome["marks"][column]
    mean, deviation = np.array(outcome["mean"][column]), np.array(outcome["deviation"][column])
    draw_band(axes, outcome["grid"], mean, 2.0 * deviation, label="mean, 2 sd", index=_INDEX[method])
    axes.plot(outcome["inputs"][:seen], outcome["targets"][:seen], ".", color=ink(), markersize=2.5, alpha=0.7)
    points = outcome["points"][column]
    axes.plot(points, np.full(len(points), -3.6), "*", color=ink(), markersize=4, linewidth=0, label="points")
    axes.set_ylim(-4.0, 3.5)


def _draw_errors(axes: Axes, records: Records, name: str) -> None:
    days = records.outcome(_PROBLEM, "pivoted")["days"]
    for method in ("pivoted", "resample", "fixed"):
        values = records.outcomes(_PROBLEM, method, name)
        draw_trials(axes, days, values, label=STUDY.methods[method], index=_INDEX[method])
    axes.set_ylim(bottom=0.0)


def last(records: Records, method: str, name: str) -> list[float]:
    """An error at the end, trial by trial."""
    return [values[-1] for values in records.outcomes(_PROBLEM, method, name)]


def rises(records: Records, method: str) -> list[float]:
    """How much the error on the first days has risen since they were fitted, trial by trial."""
    return [values[-1] - values[0] for values in records.outcomes(_PROBLEM, method, "rmse_first")]


def describe(records: Records) -> str:
    ends = " and ".join(
        f"{format_mean(last(records, method, 'rmse_first'))} for {STUDY.methods[method]}" for method in _ROWS
    )
    return (
        "Predictions of an exchange rate after 20, 40 and 60 days, resampling above and pivoted Cholesky below, and "
        f"errors by day. On the first days the error ends at {ends}."
    )


def judge(records: Records) -> Judgement:
    rise = float(mean_and_error(rises(records, "pivoted"))[0])
    first, second = (last(records, method, "rmse_first") for method in _ROWS)
    judgement = weigh(
        [
            is_larger(
                "RMSE on the first days at the end, resampling less pivoted Cholesky", paired_difference(first, second)
            ),
            is_larger(
                "rise of that RMSE with resampling", paired_difference(rises(records, "resample"), [0.0] * len(first))
            ),
            is_met(f"with pivoted Cholesky it rises by {rise:.2g} (bound {_SMALL_RISE:g})", is_true=rise < _SMALL_RISE),
        ]
    )
    everything = ", ".join(
        f"{STUDY.methods[method]} {format_mean(last(records, method, 'rmse_all'))}" for method in STUDY.methods
    )
    return replace(judgement, remark=f"{judgement.remark} RMSE on all days at the end: {everything}.")


def tables(records: Records) -> tuple[NumberTable, ...]:
    rows = tuple(
        (label, *(format_mean(last(records, method, name)) for name in ("rmse_first", "nll_first", "rmse_all")))
        for method, label in STUDY.methods.items()
    )
    header = ("inducing points", "RMSE, first days", "NLL, first days", "RMSE, all days")
    caption = "At the end, mean and half a 95 % interval; the paper gives no numbers"
    return (NumberTable(caption, header, rows),)


FIGURE = Figure(
    name="fig7",
    title="Fig. 7: an exchange rate, day by day",
    study="exchange_rates",
    problems=(_PROBLEM,),
    methods=tuple(STUDY.methods),
    claim="Resampled inducing points forget the first days; those by pivoted Cholesky do not.",
    notes=(
        "The paper takes 10 steps of Adam after each day, on an objective for that day alone. Here days are absorbed "
        "in closed form, and every 10 days hyperparameters are learned from these and the belief before them.",
        "Components of the spectral mixture start equal, as GPyTorch starts them, and stay so: it is one component.",
        "Pivoting weighs by what is known at the points; the paper's code takes the plain kernel matrix.",
        "Only resampling is random; the error of the other methods over trials is zero.",
    ),
    draw=draw,
    describe=describe,
    judge=judge,
    tables=tables,
)
