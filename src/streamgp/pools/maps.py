"""A map of the pool: prediction, uncertainty, and the chosen places."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.checks import check_finite, to_double
from streamgp.display import pyplot
from streamgp.errors import ShapeError
from streamgp.loops import ResponsePrediction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_map"]

# Places become smaller where there are many.
_LARGEST, _INK = 40.0, 2e4


def draw_map(
    members: Float[Tensor, "n d"],
    prediction: ResponsePrediction,
    *,
    told: Int[Tensor, " k"],
    pending: Int[Tensor, " p"],
    coordinates: Any,
    axes: Any,
) -> "tuple[Axes, ...]":
    """Draw the predicted response, the width of its interval, and the probability to exceed a threshold.

    Args:
        members: Inputs of all members.
        prediction: Of all members.
        told: Members that are known.
        pending: Members that are awaited.
        coordinates: Two numbers for each member; the first two columns of the inputs by default.
        axes: One for each panel; a new figure by default.
    """
    places = _read_coordinates(coordinates, members)
    panels = [
        (prediction.mean, "viridis", "prediction"),
        (prediction.upper - prediction.lower, "magma", "width of the interval"),
    ]
    if prediction.exceedance is not None:
        panels.append((prediction.exceedance, "YlOrRd", "probability above the threshold"))
    if axes is None:
        size = (4.5 * len(panels), 4)
        _, axes = pyplot().subplots(1, len(panels), figsize=size, layout="constrained", sharex=True, sharey=True)
    diameter, drawn_on = min(_LARGEST, _INK / len(places)), tuple(np.ravel(axes))
    if len(drawn_on) != len(panels):
        raise ShapeError(
            f"The map has {len(panels)} panels, but {len(drawn_on)} axes were given. Pass one for each panel, or none."
        )
    for panel, (values, colors, title) in zip(drawn_on, panels, strict=True):
        drawn = panel.scatter(places[:, 0], places[:, 1], c=values, s=diameter, cmap=colors, linewidths=0)
        panel.figure.colorbar(drawn, ax=panel)
        panel.set_title(title)
        known, awaited = places[told], places[pending]
        panel.scatter(*known.T, s=12, facecolors="none", edgecolors="black", linewidths=0.8, label="told")
        if len(awaited):
            panel.scatter(*awaited.T, s=50, marker="*", color="tab:red", label="pending")
    drawn_on[0].legend(loc="best")
    return drawn_on


def _read_coordinates(coordinates: Any, members: Tensor) -> Any:
    n, d = members.shape
    if coordinates is None and d < 2:
        raise ShapeError(
            f"A map needs two coordinates, but the members have {d} input. Pass coordinates of shape ({n}, 2)."
        )
    places = members[:, :2] if coordinates is None else to_double(coordinates, "coordinates")
    if places.shape != (n, 2):
        raise ShapeError(
            f"coordinates must have shape ({n}, 2), a place for each member of the pool, but has shape "
            f"{tuple(places.shape)}."
        )
    return check_finite(places, "coordinates").numpy()
