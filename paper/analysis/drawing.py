"""The look that the report's pictures share."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from paper.analysis.statistics import mean_and_error, median_and_interval

__all__ = ["PALETTE", "draw_band", "draw_medians", "draw_trials", "ink", "legend_below", "new_picture"]

# Okabe and Ito's palette without black and yellow: distinct for color-blind readers. Its orange and its light blue are
# darkened, so that every line has a contrast of at least 3 to light and to dark pages.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#C78500", "#3B9AD6", "#8C8C8C", "#8A6FD1")
LINES = ("-", "--", "-.", ":")
# More bands than these on an axis hide each other; beyond, lines have a mark at their end instead.
MOST_BANDS = 6


def new_picture(num_rows: int = 1, num_columns: int = 1, *, height: float = 3.2, width: float = 8.0) -> Figure:
    """An empty picture with `num_rows` × `num_columns` axes, as wide as a page; `height` is of a row, in inches."""
    picture = Figure(figsize=(width, height * num_rows), layout="constrained")
    picture.subplots(num_rows, num_columns, squeeze=False)
    for axes in picture.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, linewidth=0.5, alpha=0.35)
        axes.set_axisbelow(True)
    return picture


def ink() -> str:
    """The color of text on the page that is drawn for, dark or light: for data, truths and lines of reference."""
    return str(mpl.rcParams["text.color"])


def draw_trials(axes: Axes, x: ArrayLike, values: Sequence[ArrayLike], *, label: str, index: int) -> None:
    """Draw a mean over trials with a band of its 95 % interval.

    Args:
        axes: Where to draw.
        x: Places along the axis, `(k,)`.
        values: One row `(k,)` for each trial.
        label: Name in the legend.
        index: Which color and kind of line; the same method has the same index everywhere in a picture.
    """
    mean, error = mean_and_error([np.asarray(each, dtype=float) for each in values])
    draw_band(axes, x, mean, error, label=label, index=index)


def draw_band(axes: Axes, x: ArrayLike, mean: ArrayLike, radius: ArrayLike, *, label: str, index: int) -> None:
    """Draw a line and a band around it."""
    x, mean, radius = (np.asarray(each, dtype=float) for each in (x, mean, radius))
    color = PALETTE[index % len(PALETTE)]
    axes.plot(x, mean, color=color, linestyle=LINES[index % len(LINES)], linewidth=1.8, label=label)
    if np.isfinite(radius).any():
        axes.fill_between(x, mean - radius, mean + radius, color=color, alpha=0.18, linewidth=0)


def draw_medians(
    axes: Axes, x: ArrayLike, runs: Sequence[ArrayLike], *, label: str, index: int, num_lines: int = 1
) -> None:
    """Draw a median over trials with the order statistics that enclose it, which no trial exceeds.

    Args:
        axes: Where to draw.
        x: Places along the axis, `(k,)`.
        runs: One row `(k,)` for each trial; a single one is drawn as a thin line with a mark at its end.
        label: Name in the legend.
        index: Which color and kind of line; the same method has the same index everywhere in a picture.
        num_lines: Number of lines on these axes.
    """
    median, low, high = median_and_interval(np.asarray(runs, dtype=float))
    color, style = PALETTE[index % len(PALETTE)], LINES[index % len(LINES)]
    has_band = len(runs) > 1 and num_lines <= MOST_BANDS
    width = 1.8 if len(runs) > 1 else 1.0
    (line,) = axes.plot(x, median, color=color, linestyle=style, linewidth=width, label=label)
    if not has_band:
        line.set(marker="o" if len(runs) > 1 else "D", markersize=4, markevery=[-1])
    if has_band:
        axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)


def legend_below(picture: Figure, *, ncols: int = 3) -> None:
    """Draw one legend of all axes below them, where it hides no line."""
    found: dict[str, Any] = {}
    for axes in picture.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    picture.legend(list(found.values()), list(found), loc="outside lower center", ncols=ncols, fontsize=8)
