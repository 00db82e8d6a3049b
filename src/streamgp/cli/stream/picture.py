"""A picture of the running metrics of a stream."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from streamgp.cli.pictures import COLORS, save_figure, style_axes
from streamgp.streaming.metrics import MetricsPoint, StreamMetrics

__all__ = ["draw_metrics", "save_picture"]

# Share of the history over which the line of recent rows is taken.
_RECENT = 0.05

_PANELS: dict[str, tuple[str, str, Callable[[float], float]]] = {
    "RMSE": ("squared_error", "RMSE", math.sqrt),
    "accuracy": ("is_correct", "accuracy", float),
    "NLPD": ("negative_log_density", "negative log predictive density", float),
    "coverage": ("is_covered", "coverage of 90 % intervals", float),
    "Brier": ("brier", "Brier score", float),
}


def draw_metrics(metrics: StreamMetrics) -> Figure:
    """Draw metrics over all rows so far, and over the most recent ones, against the number of rows."""
    panels = [each for each in _PANELS.values() if each[0] in metrics.measures]
    figure = Figure(figsize=(8, 2.4 * len(panels)), layout="constrained")
    column = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (measure, label, transform) in zip(column, panels, strict=True):
        index = metrics.measures.index(measure)
        _draw_line(axes, metrics.history, index=index, transform=transform)
        if measure == "is_covered":
            axes.axhline(0.9, color=COLORS["truth"], linewidth=1.0, linestyle="--")
        axes.set_ylabel(label)
        style_axes(axes)
    column[-1].set_xlabel("rows")
    if metrics.history:
        column[0].legend(frameon=False)
    return figure


def save_picture(metrics: StreamMetrics, path: Path) -> None:
    """Draw metrics into a file."""
    save_figure(draw_metrics(metrics), path)


def _draw_line(axes: Axes, history: Sequence[MetricsPoint], *, index: int, transform: Callable[[float], float]) -> None:
    rows = [point.num_rows for point in history]
    totals = [point.totals[index] for point in history]
    width = max(1, round(_RECENT * len(history)))
    recent = [
        transform((totals[i] - totals[i - width]) / (rows[i] - rows[i - width])) for i in range(width, len(history))
    ]
    axes.plot(rows[width:], recent, color=COLORS["new data"], linewidth=1.0, alpha=0.7, label="recent rows")
    means = [transform(total / count) for total, count in zip(totals, rows, strict=True)]
    axes.plot(rows, means, color=COLORS["belief"], linewidth=1.8, label="all rows so far")
