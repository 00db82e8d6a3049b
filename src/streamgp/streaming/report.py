"""What became of predictions that were made before their rows were learned."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from streamgp.display import html_table, pyplot
from streamgp.errors import ShapeError
from streamgp.streaming.metrics import MetricsPoint, coverage_warning
from streamgp.streaming.scoring import ClassScore, ValueScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ScoreReport"]

# Share of the history over which the line of recent rows is taken.
_RECENT = 0.05


@final
@dataclass(frozen=True, repr=False)
class ScoreReport:
    """How good a stream was predicted, each row before it was learned; a frozen value.

    Printed, it is a table; `metrics` has its numbers, and `plot` draws it. The baselines look at no input: the last
    value and the mean so far, or the last and the most frequent class. Rows that were learned as a block were
    predicted as one, by the model and by the baselines.

    Attributes:
        score: The sums, of constant size however long the stream is.
    """

    score: ValueScore | ClassScore

    @property
    def num_rows(self) -> int:
        """Number of rows that were predicted."""
        return self.score.metrics.num_rows

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics by name; NaN before the first prediction."""
        return self.score.metrics.summary()

    def __repr__(self) -> str:
        metrics = self.metrics
        width = max(map(len, metrics))
        lines = [f"{self.num_rows} rows, each predicted before it was learned"]
        lines += [f"  {name:<{width}}  {value:.4g}" for name, value in metrics.items()]
        warning = coverage_warning(self.score.metrics, is_discrete=self._is_discrete)
        return "\n".join(lines if warning is None else [*lines, warning])

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
        self._draw_metrics(axes[1])
        return axes

    @property
    def _is_discrete(self) -> bool:
        return isinstance(self.score, ValueScore) and self.score.is_discrete

    def _draw_calibration(self, axes: "Axes") -> None:
        calibration = self.score.calibration
        axes.plot([0.0, 1.0], [0.0, 1.0], color="gray", linewidth=1.0, linestyle=":")
        if isinstance(self.score, ClassScore):
            points = calibration.reliability()
            axes.plot([p for p, _, _ in points], [share for _, share, _ in points], "o-", color="tab:blue")
            axes.set(xlabel="predicted probability", ylabel="share that came true")
        else:
            if sum(calibration.counts):
                levels, shares = (0.0, *calibration.levels), (0.0, *calibration.frequencies())
                axes.plot(levels, shares, color="tab:blue")
            axes.set(xlabel="predicted probability", ylabel="share of targets below")
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), title="calibration")

    def _draw_metrics(self, axes: "Axes") -> None:
        is_class = isinstance(self.score, ClassScore)
        lines = (
            [
                ("is_correct", "model", "-"),
                ("is_most_frequent", "most frequent class", "--"),
                ("is_last", "last class", ":"),
            ]
            if is_class
            else [
                ("absolute_error", "model", "-"),
                ("running_mean_error", "running mean", "--"),
                ("last_value_error", "last value", ":"),
            ]
        )
        history = self.score.metrics.history
        for measure, name, style in lines:
            index, color = self.score.metrics.measures.index(measure), "tab:blue" if name == "model" else "gray"
            rows, means = _recent_means(history, index)
            axes.plot(rows, means, style, color=color, label=name)
        axes.set(xlabel="rows", ylabel="accuracy" if is_class else "MAE", title="recent rows")
        if history:
            axes.legend(frameon=False)


def _recent_means(history: Sequence[MetricsPoint], index: int) -> tuple[list[int], list[float]]:
    """Means of a measure over the rows before each point of the history."""
    width = max(1, math.ceil(_RECENT * len(history)))
    start = MetricsPoint(0, (0.0,) * (index + 1))
    points = [start, *history]
    rows: list[int] = []
    means: list[float] = []
    for last, first in zip(points[1:], [*[start] * width, *points[1:]], strict=False):
        rows.append(last.num_rows)
        means.append((last.totals[index] - first.totals[index]) / (last.num_rows - first.num_rows))
    return rows, means
