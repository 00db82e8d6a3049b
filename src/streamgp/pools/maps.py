"""A map of the pool: prediction, uncertainty, and the chosen places."""

from typing import TYPE_CHECKING, Any

from streamgp.checks import check_finite, to_double
from streamgp.errors import ShapeError
from streamgp.pools.prediction import PoolPrediction
from streamgp.pools.settings import Settings
from streamgp.pools.state import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_map"]

# Places become smaller where there are many.
_LARGEST, _INK = 40.0, 2e4


def draw_map(
    state: State, settings: Settings, prediction: PoolPrediction, *, coordinates: Any, axes: Any
) -> "tuple[Axes, Axes]":
    """Draw the predicted response, and the width of its interval, at the places of all members.

    Args:
        state: Which members were told and which are pending.
        settings: Of the learner.
        prediction: Of all members.
        coordinates: Two numbers for each member; the first two columns of the inputs by default.
        axes: Two axes; a new figure by default.
    """
    import matplotlib.pyplot as plt  # slow to load, and few learners are drawn

    places = _read_coordinates(coordinates, settings)
    if axes is None:
        _, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharex=True, sharey=True)
    left, right = axes
    size = min(_LARGEST, _INK / len(places))
    width = prediction.upper - prediction.lower
    panels = ((left, prediction.mean, "viridis", "prediction"), (right, width, "magma", "width of the interval"))
    for panel, values, colors, title in panels:
        drawn = panel.scatter(places[:, 0], places[:, 1], c=values, s=size, cmap=colors, linewidths=0)
        panel.figure.colorbar(drawn, ax=panel)
        panel.set_title(title)
        told, pending = places[state.told.members], places[state.pending]
        panel.scatter(told[:, 0], told[:, 1], s=12, facecolors="none", edgecolors="black", linewidths=0.8, label="told")
        if len(pending):
            panel.scatter(pending[:, 0], pending[:, 1], s=50, marker="*", color="tab:red", label="pending")
    left.legend(loc="best")
    return left, right


def _read_coordinates(coordinates: Any, settings: Settings) -> Any:
    n, d = settings.inputs.shape
    if coordinates is None and d < 2:
        raise ShapeError(
            f"A map needs two coordinates, but the members have {d} input. Pass coordinates of shape ({n}, 2)."
        )
    places = settings.inputs[:, :2] if coordinates is None else to_double(coordinates, "coordinates")
    if places.shape != (n, 2):
        raise ShapeError(
            f"coordinates must have shape ({n}, 2), a place for each member of the pool, but has shape "
            f"{tuple(places.shape)}."
        )
    return check_finite(places, "coordinates").numpy()
