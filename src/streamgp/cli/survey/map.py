"""A map of a survey: what is predicted, how surely, and where to go next."""

from typing import Any

from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from torch import Tensor

from streamgp.cli.survey.options import SurveyOptions
from streamgp.cli.survey.pool import SurveyPool
from streamgp.pools import ResponsePrediction

__all__ = ["draw_survey"]

_WIDTH = 4.4
# Extents that differ by more than this are not of one unit, and are not drawn to one scale.
_MOST_OBLONG = 4.0
# Places become smaller where there are many, and more numbers than these would cover each other.
_LARGEST, _INK = 36.0, 1.2e4
_MOST_NUMBERED = 30


def draw_survey(
    pool: SurveyPool, prediction: ResponsePrediction | None, *, chosen: Tensor, options: SurveyOptions
) -> Figure:
    """Draw three panels, or only the one of chosen places if nothing is predicted yet.

    Args:
        pool: All members.
        prediction: Of all members, or None.
        chosen: Members in the order of their ranks.
        options: Names of the coordinates, and the threshold.
    """
    num_panels = 1 if prediction is None else 3
    aspect = _aspect(pool)
    height = 1.5 + 0.75 * _WIDTH * (aspect or 0.9)
    figure = Figure(figsize=(_WIDTH * num_panels, min(height, 2.0 * _WIDTH)), layout="constrained")
    panels = figure.subplots(1, num_panels, sharex=True, sharey=True, squeeze=False)[0]
    if prediction is not None:
        _shade(panels[0], pool, prediction.mean, colors="viridis")
        panels[0].set_title(f"predicted {options.response}")
        _shade(panels[1], pool, prediction.upper - prediction.lower, colors="magma")
        panels[1].set_title("width of the 95 % interval")
    _draw_chosen(panels[-1], pool, prediction, chosen=chosen, options=options)
    for panel in panels:
        panel.set_xlabel(options.coordinates[0], parse_math=False)
        if aspect is not None:
            panel.set_aspect("equal")
    panels[0].set_ylabel(options.coordinates[1], parse_math=False)
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure


def _shade(
    axes: Axes, pool: SurveyPool, values: Float[Tensor, " n"], *, colors: str, limits: tuple[float, float] | None = None
) -> None:
    """Draw all places in the colors of their values; the largest values are drawn last."""
    low, high = (None, None) if limits is None else limits
    order = values.argsort()
    x, y = pool.inputs[order, 0].numpy(), pool.inputs[order, 1].numpy()
    size = min(_LARGEST, _INK / len(order))
    drawn = axes.scatter(
        x, y, c=values[order].numpy(), s=size, cmap=colors, vmin=low, vmax=high, linewidths=0.3, edgecolors="#808080"
    )
    axes.figure.colorbar(drawn, ax=axes, orientation="horizontal", location="bottom", shrink=0.85, aspect=35, pad=0.02)


def _draw_chosen(
    axes: Axes, pool: SurveyPool, prediction: ResponsePrediction | None, *, chosen: Tensor, options: SurveyOptions
) -> None:
    if prediction is not None and prediction.exceedance is not None:
        _shade(axes, pool, prediction.exceedance, colors="YlOrRd", limits=(0.0, 1.0))
        axes.set_title(f"next places, and probability above {options.threshold:g}")
    else:
        _mark(axes, pool.inputs, s=min(_LARGEST, _INK / len(pool.inputs)), color="#D0D0D0", linewidths=0)
        axes.set_title("next places")
    if pool.is_surveyed.any():
        _mark(axes, pool.inputs[pool.is_surveyed], s=16, marker="x", color="black", linewidths=0.9, label="surveyed")
    _mark(axes, pool.inputs[chosen], s=110, marker="*", color="#56B4E9", edgecolors="black", label="next")
    if len(chosen) <= _MOST_NUMBERED:
        outline = [withStroke(linewidth=2.5, foreground="white")]
        for rank, (x, y) in enumerate(pool.inputs[chosen, :2].tolist(), start=1):
            text = axes.annotate(str(rank), (x, y), xytext=(5, 4), textcoords="offset points", fontsize=9)
            text.set(path_effects=outline, fontweight="bold")


def _mark(axes: Axes, inputs: Float[Tensor, "k d"], **look: Any) -> None:
    axes.scatter(inputs[:, 0].numpy(), inputs[:, 1].numpy(), **look)


def _aspect(pool: SurveyPool) -> float | None:
    """Height of the map over its width; None if the coordinates are not of one unit."""
    coordinates = pool.inputs[:, :2]
    width, height = (coordinates.amax(0) - coordinates.amin(0)).tolist()
    return height / width if max(width, height) <= _MOST_OBLONG * min(width, height) and width else None
