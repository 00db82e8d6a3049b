"""Fig. 8: bananas in four batches."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from paper.analysis.claims import Check, is_met, weigh
from paper.analysis.drawing import PALETTE, legend_below, new_picture
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records
from paper.studies.bananas import STUDY

__all__ = ["FIGURE"]

_PROBLEM = "bananas"
_SHOWN = "conditioned"
_JUDGED = ("conditioned", "paper")


def draw(records: Records) -> Picture:
    outcome = records.outcome(_PROBLEM, _SHOWN)
    num_rows = outcome["num_rows"]
    picture = new_picture(3, len(num_rows), height=1.9)
    first, second = outcome["first"], outcome["second"]
    axes = np.reshape(np.array(picture.axes, dtype=object), (3, len(num_rows)))
    largest = float(np.max(outcome["variance"]))
    for column, seen in enumerate(num_rows):
        _draw_data(axes[0, column], records, seen)
        axes[0, column].set_title(f"T = {seen}", fontsize=9)
        chance = axes[1, column].pcolormesh(
            first, second, outcome["probability"][column], vmin=0.0, vmax=1.0, cmap="RdBu_r", shading="nearest"
        )
        spread = axes[2, column].pcolormesh(
            first, second, outcome["variance"][column], vmin=0.0, vmax=largest, cmap="viridis", shading="nearest"
        )
    for each in picture.axes:
        each.set_xlim(first[0], first[-1])
        each.set_ylim(second[0], second[-1])
        each.tick_params(labelsize=7)
        each.grid(False)
    for row in range(3):
        axes[row, 0].set_ylabel("$x_2$", fontsize=8)
    for column in range(len(num_rows)):
        axes[2, column].set_xlabel("$x_1$", fontsize=8)
    picture.colorbar(chance, ax=list(axes[1]), label="P(class 1)")
    picture.colorbar(spread, ax=list(axes[2]), label="latent variance")
    legend_below(picture)
    return picture


def _draw_data(axes: Axes, records: Records, seen: int) -> None:
    outcome = records.outcome(_PROBLEM, _SHOWN)
    X, classes = np.array(outcome["inputs"][:seen]), np.array(outcome["classes"][:seen])
    for label, marker in ((0, "o"), (1, "^")):
        points = X[classes == label]
        axes.plot(points[:, 0], points[:, 1], marker, color=PALETTE[label], markersize=2.5, label=f"class {label}")


def losses(records: Records, method: str) -> list[float]:
    """How much accuracy each strip has lost by the end since its batch came; the last strip's batch comes last."""
    table = np.array(records.outcome(_PROBLEM, method)["strip_accuracy"])
    return [float(table[strip, strip] - table[-1, strip]) for strip in range(len(table) - 1)]


def falls(records: Records, method: str) -> list[float]:
    """Latent variance of each strip after its batch, as a share of that before it, from the second on."""
    table = np.array(records.outcome(_PROBLEM, method)["strip_variance"])
    return [float(table[strip, strip] / table[strip - 1, strip]) for strip in range(1, len(table))]


def describe(records: Records) -> str:
    outcome = records.outcome(_PROBLEM, _SHOWN)
    accuracy = ", ".join(f"{value:.3f}" for value in outcome["accuracy"])
    shares = ", ".join(f"{share:.0%}" for share in falls(records, _SHOWN))
    return (
        "Three rows: the data of one to four batches from left to right, the probability of class 1, and the latent "
        f"variance, which falls where data has come, to {shares} of what it was. Test accuracy: {accuracy}."
    )


def judge(records: Records) -> Judgement:
    checks = [check for method in _JUDGED for check in _checks(records, method)]
    return weigh(checks)


def _checks(records: Records, method: str) -> list[Check]:
    outcome, label = records.outcome(_PROBLEM, method), STUDY.methods[method]
    lost = losses(records, method)
    bounds = [
        _error(outcome["strip_accuracy"][strip][strip], outcome["strip_sizes"][strip]) for strip in range(len(lost))
    ]
    worst = int(np.argmax(np.subtract(lost, bounds)))
    fall = max(falls(records, method))
    start, end = outcome["accuracy"][0], outcome["accuracy"][-1]
    return [
        is_met(
            f"{label}: the strip that lost most of its accuracy lost {lost[worst]:+.3f} (two standard errors of the "
            f"test {bounds[worst]:.2g})",
            is_true=lost[worst] <= bounds[worst],
        ),
        is_met(
            f"variances fall to {fall:.0%} or less where a batch has come; accuracy goes from {start:.3f} to {end:.3f}",
            is_true=fall < 1.0 and end > start,
        ),
    ]


def _error(accuracy: float, num_rows: int) -> float:
    """Two standard errors of an accuracy."""
    return 2.0 * math.sqrt(accuracy * (1.0 - accuracy) / num_rows)


def tables(records: Records) -> tuple[NumberTable, ...]:
    num_rows = records.outcome(_PROBLEM, _SHOWN)["num_rows"]
    return tuple(
        NumberTable(
            f"{caption}; the paper gives no numbers",
            ("method", *(f"T = {seen}" for seen in num_rows)),
            tuple(
                (label, *(f"{value:.3f}" for value in records.outcome(_PROBLEM, method)[name]))
                for method, label in STUDY.methods.items()
            ),
        )
        for caption, name in (
            ("Accuracy on the 4900 test rows", "accuracy"),
            ("Negative log predictive density on them", "nlpd"),
        )
    )


FIGURE = Figure(
    name="fig8",
    title="Fig. 8: bananas in four batches",
    study="bananas",
    problems=(_PROBLEM,),
    methods=tuple(STUDY.methods),
    claim="Conditioning adapts to new batches without forgetting; variances fall where data has come.",
    notes=(
        "There are 25 inducing points, as printed; the paper's code takes all 100 rows of the first batch, and its "
        "curvature of the Bernoulli likelihood is p(1 + p) in place of p(1 - p).",
        "The first fit is by L-BFGS, and probabilities are averaged over the latent belief.",
        "The first method finds sites by variational steps, the second by the paper's rule; the third does not grow.",
    ),
    draw=draw,
    describe=describe,
    judge=judge,
    tables=tables,
    is_statistical=False,
)
