"""Reports and pictures of a stream: how well it was predicted, and what became of the model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from streamgp.display import html_table, new_axes, pyplot
from streamgp.errors import ShapeError
from streamgp.streams.score import ClassScore, RunningTotals, ValueScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ScoreReport", "draw_history"]

# Share of the history over which the line of recent rows is taken.
_RECENT = 0.05
# With fewer rows nothing is said of coverage.
_ENOUGH_ROWS = 50
_NO_INPUTS = {
    "is_correct": (("is_most_frequent", "most frequent class", "--"), ("is_last", "last class", ":")),
    "absolute_error": (("absolute_error_mean", "running mean", "--"), ("absolute_error_last", "last value", ":")),
}


@final
@dataclass(frozen=True, repr=False)
class ScoreReport:
    """Scores of the predictions of a stream, each row before it was learned; a frozen value.

    Printed, it is a table; `metrics` has its numbers, and `plot` draws it. The baselines look at no input: the last
    value and the mean so far, or the last and the most frequent class.

    Attributes:
        score: Sums, of constant size however long the stream is.
    """

    score: ValueScore | ClassScore

    @property
    def num_rows(self) -> int:
        """Number of rows that were predicted."""
        return self.score.metrics.num_rows

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics by name; NaN before the first prediction."""
        return self.score.summary()

    @property
    def coverage_by_horizon(self) -> dict[str, tuple[int, float]]:
        """Number of rows and share of targets in their 90 % intervals, by how many rows ahead they were predicted."""
        return self.score.coverage_by_horizon if isinstance(self.score, ValueScore) else {}

    @property
    def pit_histogram(self) -> tuple[np.ndarray, np.ndarray]:
        """Edges of bins, and the density in them of the predicted probabilities of at most the targets.

        It is one everywhere where predictions are calibrated; it is high at both ends where intervals are too narrow.
        """
        return self.score.calibration.histogram()

    @property
    def hints(self) -> list[str]:
        """Sentences about what should be looked at; none if all is well."""
        score = self.score
        found = [] if score.num_unscored == 0 else [f"The predictions of {score.num_unscored} rows were not finite."]
        if isinstance(score, ClassScore):
            return found
        if self.num_rows >= _ENOUGH_ROWS:
            share = score.metrics.mean("is_covered")
            # Far is five percent beyond two standard errors; intervals of counts must hold more.
            is_far = abs(share - 0.9) > 0.05 + 2.0 * math.sqrt(0.09 / self.num_rows)
            if is_far and not (score.is_discrete and share > 0.9):
                advice = "wider than needed" if share > 0.9 else "too narrow, so do not rely on them"
                found.append(f"90 % intervals held {share:.0%} of {self.num_rows} targets: they are {advice}.")
        if score.seems_counts:
            found.append(
                f"All {score.num_targets} targets are whole numbers, none negative. If they are counts, "
                "likelihood='negative_binomial' or 'poisson' predicts them as such."
            )
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScoreReport) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        facts = {name: f"{value:.4g}" for name, value in self.metrics.items()}
        horizons = self.coverage_by_horizon
        if set(horizons) - {"1"}:
            facts |= {f"coverage {name} rows ahead": f"{share:.3g}" for name, (_, share) in horizons.items()}
        width = max(map(len, facts))
        lines = [f"{self.num_rows} rows, each predicted before it was learned"]
        lines += [f"  {name:<{width}}  {value}" for name, value in facts.items()]
        return "\n".join([*lines, *self.hints])

    def _repr_html_(self) -> str:
        return html_table(f"{self.num_rows} rows, each predicted before it was learned", self.metrics)

    def plot(self, axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
        """Draw a calibration plot, and the running metrics beside it.

        For values the calibration plot shows which share of targets lay below each predicted quantile; for classes, how
        often what was predicted with a probability came true. Both should lie on the diagonal.

        Args:
            axes: Two axes to draw on; those of a new figure by default.

        Returns:
            The two axes.
        """
        if axes is None:
            _, axes = pyplot().subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
        if len(axes) != 2:
            raise ShapeError(f"axes must be two, for the calibration and for the metrics, but are {len(axes)}.")
        self._draw_calibration(axes[0])
        draw_running(axes[1], self.score.metrics, "is_correct" if self._is_class else "absolute_error")
        axes[1].set(xlabel="rows", ylabel="accuracy" if self._is_class else "MAE", title="recent rows")
        return axes

    def plot_pit(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the histogram of predicted probabilities of at most the targets, which should be flat.

        Args:
            axes: Where to draw; a new figure by default.
        """
        axes = new_axes(axes)
        edges, density = self.pit_histogram
        axes.stairs(density, edges, fill=True, color="tab:blue", alpha=0.5)
        axes.axhline(1.0, color="gray", linewidth=1.0, linestyle=":")
        axes.set(xlabel="predicted probability of at most the target", ylabel="density", xlim=(0.0, 1.0))
        return axes

    @property
    def _is_class(self) -> bool:
        return isinstance(self.score, ClassScore)

    def _draw_calibration(self, axes: "Axes") -> None:
        calibration = self.score.calibration
        axes.plot([0.0, 1.0], [0.0, 1.0], color="gray", linewidth=1.0, linestyle=":")
        if self._is_class:
            points = calibration.reliability()
            axes.plot([p for p, _, _ in points], [share for _, share, _ in points], "o-", color="tab:blue")
            axes.set(xlabel="predicted probability", ylabel="share that came true")
        else:
            if calibration.counts.any():
                axes.plot(calibration.histogram()[0], [0.0, *calibration.frequencies()], color="tab:blue")
            axes.set(xlabel="predicted probability", ylabel="share of targets below")
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), title="calibration")


def draw_running(axes: "Axes", metrics: RunningTotals, measure: str) -> None:
    """Draw a measure over recent rows, beside those of the baselines."""
    lines = [(measure, "model", "-"), *_NO_INPUTS.get(measure, ())]
    for name, label, style in lines:
        color = "tab:blue" if label == "model" else "gray"
        axes.plot(*_recent_means(metrics, name), style, color=color, label=label)
    if len(metrics.history):
        axes.legend(frameon=False, fontsize="small")


def _recent_means(metrics: RunningTotals, measure: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the history, and means of a measure over the rows before each."""
    if not len(metrics.history):
        return np.zeros(0), np.zeros(0)
    rows, totals = metrics.history[:, 0], metrics.history[:, 1 + metrics.measures.index(measure)]
    width = max(1, math.ceil(_RECENT * len(rows)))
    before = np.maximum(np.arange(len(rows)) - width, -1)
    first_rows = np.where(before < 0, 0.0, rows[before])
    first_totals = np.where(before < 0, 0.0, totals[before])
    return rows, (totals - first_totals) / (rows - first_rows)


def draw_history(
    score: ValueScore | ClassScore, points: Sequence[Any], refits: Sequence[Any], names: Sequence[str]
) -> "Figure":
    """Draw the latest predictions with what came, the running error, and weights and points of the model.

    Args:
        score: How well rows were predicted.
        points: History of the model: row, weights, scale and number of points.
        refits: Records of refits.
        names: Names of the experts that have the weights.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 9.0), layout="constrained")
    latest, errors, weights, scales = figure.subplots(4, 1)
    table, is_class = score.recent.settled(), isinstance(score, ClassScore)
    _draw_latest(latest, table, is_class=is_class)
    draw_running(errors, score.metrics, "is_correct" if is_class else "absolute_error")
    errors.set(ylabel="accuracy" if is_class else "MAE", xlabel="rows")
    rows = [point.row for point in points]
    if rows:
        shares = np.array([point.weights for point in points if len(point.weights) == len(names)]).T
        weights.stackplot(rows[-shares.shape[1] :], shares, labels=names, alpha=0.8)
        weights.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        scales.plot(rows, [point.num_points for point in points], color="tab:green", label="inducing points")
        if not is_class:
            noise = scales.twinx()
            noise.plot(rows, [point.scale for point in points], color="tab:purple")
            noise.set_ylabel("scale of the noise", color="tab:purple")
    weights.set(ylabel="weights of experts", ylim=(0.0, 1.0), xlabel="rows")
    scales.set(ylabel="inducing points", xlabel="rows")
    for axes in (latest, errors, weights, scales):
        low, high = axes.get_xlim()
        _draw_lines(axes, [each.row for each in refits if low <= each.row <= high], "refit", "0.6", ":")
        _draw_lines(axes, [row for row in score.recent.drifts if low <= row <= high], "drift", "tab:red", "-")
        axes.set_xlim(low, high)
        axes.spines[["top", "right"]].set_visible(False)
    latest.legend(frameon=False, fontsize="small", ncols=5)
    return figure


def _draw_latest(axes: "Axes", table: np.ndarray, *, is_class: bool) -> None:
    rows, targets, mean, lower, upper = table.T
    color = "tab:blue"
    if not is_class:
        axes.fill_between(rows, lower, upper, color=color, alpha=0.2, linewidth=0, label="90 % interval")
        axes.plot(rows, mean, color=color, linewidth=1.2, label="predicted before")
    axes.plot(rows, targets, ".", color="black", markersize=3, label=None if is_class else "what came")
    axes.set(xlabel="latest rows", ylabel="probability of what came" if is_class else "target")
    inside = np.r_[targets, mean][np.isfinite(np.r_[targets, mean])]
    if len(inside) and not is_class:  # one wide interval must not hide all others
        margin = 0.3 * (float(np.ptp(inside)) or 1.0)
        axes.set_ylim(inside.min() - margin, inside.max() + margin)


def _draw_lines(axes: "Axes", rows: Sequence[int], name: str, color: str, style: str) -> None:
    for index, row in enumerate(rows):
        axes.axvline(row, color=color, linestyle=style, linewidth=0.8, label=name if index == 0 else None)
