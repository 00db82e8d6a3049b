"""Condition numbers along the look-ahead: Fig. 10 b."""

import numpy as np
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

from streamgp.experiments.analysis.claims import Check, is_larger, weigh
from streamgp.experiments.analysis.drawing import draw_trials, new_picture
from streamgp.experiments.analysis.statistics import format_mean, paired_difference
from streamgp.experiments.schema.figure import Figure, Judgement, NumberTable
from streamgp.experiments.schema.record import Records
from streamgp.experiments.studies.condition_numbers import STUDY

__all__ = ["FIGURE"]

_PROBLEM = "rover"
_METHODS = tuple(STUDY.methods)


def _curves(records: Records, method: str) -> NDArray[np.float64]:
    """The logarithm of the condition number, a row for each trial: the mean over its paths."""
    return np.array(records.outcomes(_PROBLEM, method, "log10_condition"), dtype=float).mean(1)


def _draw(records: Records) -> Picture:
    picture = new_picture(height=4.0)
    axes = picture.axes[0]
    for index, method in enumerate(_METHODS):
        curves = _curves(records, method)
        draw_trials(axes, range(curves.shape[1]), list(curves), label=STUDY.methods[method], index=index)
    axes.set_xlabel("depth")
    axes.set_ylabel("condition number, power of ten")
    axes.legend(fontsize="small")
    return picture


def _describe(records: Records) -> str:
    ends = "; ".join(
        f"{STUDY.methods[method]} from {start:.1f} to {end:.1f}"
        for method in _METHODS
        for start, end in [_curves(records, method).mean(0)[[0, -1]]]
    )
    return f"Condition numbers against the depth of the look-ahead, as powers of ten: {ends}."


def _check(records: Records, first: str, second: str, *, what: str) -> Check:
    """Whether the second is better conditioned by more than a factor of ten, at the largest depth."""
    gain = paired_difference(_curves(records, first)[:, -1].tolist(), _curves(records, second)[:, -1].tolist())
    return is_larger(f"{what}, powers of ten beyond the first", gain.less(1.0))


def _judge(records: Records) -> Judgement:
    return weigh(
        [
            _check(records, "exact", "pseudo-data-jittered", what="exact GP over the paper's pseudo-data"),
            _check(records, "exact", "pseudo-data", what="exact GP over pseudo-data without jitter"),
            _check(records, "exact-shared", "pseudo-data-jittered", what="the first with equal hyperparameters"),
        ]
    )


def _tables(records: Records) -> tuple[NumberTable, ...]:
    rows = []
    for method in _METHODS:
        curves = _curves(records, method)
        rows.append((STUDY.methods[method], format_mean(curves[:, 0].tolist()), format_mean(curves[:, -1].tolist())))
    inducing = format_mean(records.outcomes(_PROBLEM, "conditioned", "log10_inducing"))
    rows.append(("SVGP, covariance of the inducing points", inducing, inducing))
    depth = _curves(records, "exact").shape[1] - 1
    caption = "Powers of ten of condition numbers, mean over trials and half a 95 % interval."
    return (NumberTable(caption, ("matrix", "depth 0", f"depth {depth}"), tuple(rows)),)


FIGURE = Figure(
    name="fig10b",
    title="Fig. 10 b: condition numbers along the look-ahead",
    study="condition_numbers",
    problems=(_PROBLEM,),
    methods=_METHODS,
    claim="Along a look-ahead of many steps, the matrix that a conditioned SVGP factorises is vastly better "
    "conditioned than that of an exact GP. Taken here as: by more than a factor of ten at the largest depth.",
    notes=(
        "The paper's matrix is that of pseudo-data at the inducing points and the points of a path; it is shown with "
        "the jitters of the paper's code, and without.",
        "The conditioned process factorises only the covariance of the path's points given the data, plus noise, and "
        "before that the covariance of the inducing points, once: the last row of the table.",
        "Each model has its own hyperparameters, as in the paper; an exact GP with those of the SVGP shows how much of "
        "the difference is theirs.",
        "Paths are followed with one set of candidates within a region of length 0.2 around the best of random "
        "evaluations; trials are means over the paths.",
    ),
    draw=_draw,
    describe=_describe,
    judge=_judge,
    tables=_tables,
)
