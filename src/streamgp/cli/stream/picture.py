"""A picture of a stream: its latest predictions, and the running metrics."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from streamgp.cli.pictures import COLORS, save_figure, style_axes
from streamgp.cli.stream.checkpoints import Progress
from streamgp.cli.stream.scoring import Recent
from streamgp.streaming.metrics import MetricsPoint, StreamMetrics

__all__ = ["draw_progress", "save_picture"]

# Share of the history over which the line of recent rows is taken.
_RECENT = 0.05


class _Panel(NamedTuple):
    """What a panel shows: a measure, its name, what is done with its mean, and baselines by their names."""

    measure: str
    label: str
    transform: Callable[[float], float] = float
    baselines: tuple[tuple[str, str], ...] = ()


_PANELS = (
    _Panel("squared_error", "RMSE", math.sqrt),
    _Panel(
        "absolute_error",
        "MAE",
        baselines=(("last_value_error", "last value"), ("running_mean_error", "running mean")),
    ),
    _Panel(
        "is_correct",
        "accuracy",
        baselines=(("is_most_frequent", "most frequent class"), ("is_last", "last class")),
    ),
    _Panel("negative_log_density", "negative log predictive density"),
    _Panel("is_covered", "coverage of 90 % intervals"),
    _Panel("brier", "Brier score"),
)


def draw_progress(progress: Progress) -> Figure:
    """Draw the latest predictions, and metrics over all rows and over the most recent ones, with those of baselines."""
    metrics = progress.metrics
    panels = [each for each in _PANELS if each.measure in metrics.measures]
    figure = Figure(figsize=(8, 2.4 * (len(panels) + 1)), layout="constrained")
    top, *column = figure.subplots(len(panels) + 1, 1, squeeze=False)[:, 0]
    _draw_recent(top, progress.recent)
    for axes, panel in zip(column, panels, strict=True):
        _draw_panel(axes, panel, metrics)
        axes.sharex(column[0])
    column[-1].set_xlabel("rows")
    return figure


def save_picture(progress: Progress, path: Path) -> None:
    """Draw a stream into a file."""
    save_figure(draw_progress(progress), path)


def _draw_recent(axes: Axes, recent: Sequence[Recent]) -> None:
    """Draw predictions with their bands, and what came; for classes, the probability of what came."""
    rows = [each.row for each in recent]
    predicted = [each for each in recent if each.mean is not None]
    targets = [math.nan if each.target is None else each.target for each in recent]
    axes.plot(rows, targets, ".", color=COLORS["first data"], markersize=3, label="what came" if predicted else None)
    if predicted:
        numbers = [each.row for each in predicted]
        lower, upper = ([getattr(each, name) for each in predicted] for name in ("lower", "upper"))
        color = COLORS["belief"]
        axes.fill_between(numbers, lower, upper, color=color, alpha=0.2, linewidth=0, label="90 % interval")
        axes.plot(
            numbers,
            [each.mean for each in predicted if each.mean is not None],
            color=color,
            linewidth=1.2,
            label="predicted before",
        )
    axes.set_ylabel("target" if predicted else "probability of what came")
    axes.set_xlabel("latest rows")
    if predicted:
        _limit(axes, [target for target in targets if math.isfinite(target)])
        axes.legend(frameon=False, fontsize="small")
    style_axes(axes)


def _limit(axes: Axes, targets: Sequence[float]) -> None:
    """Show what came, with a margin: the first bands are so wide that one would see nothing else."""
    if targets and max(targets) > min(targets):
        margin = 0.4 * (max(targets) - min(targets))
        axes.set_ylim(min(targets) - margin, max(targets) + margin)


def _draw_panel(axes: Axes, panel: _Panel, metrics: StreamMetrics) -> None:
    history = metrics.history
    _draw_line(axes, history, index=metrics.measures.index(panel.measure), transform=panel.transform)
    for style, (measure, name) in zip(("--", ":"), panel.baselines, strict=False):
        index = metrics.measures.index(measure)
        means = [panel.transform(point.totals[index] / point.num_rows) for point in history]
        rows = [point.num_rows for point in history]
        axes.plot(rows, means, color=COLORS["truth"], linewidth=1.2, linestyle=style, label=name)
    if panel.measure == "is_covered":
        axes.axhline(0.9, color=COLORS["truth"], linewidth=1.0, linestyle="--")
    if history and panel.baselines:
        axes.legend(frameon=False, fontsize="small")
    axes.set_ylabel(panel.label)
    style_axes(axes)


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
