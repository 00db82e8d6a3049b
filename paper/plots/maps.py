"""Maps of places, colored by a value."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

__all__ = ["draw_places", "mark_places"]


def draw_places(
    axes: Axes,
    places: tuple[Sequence[float], Sequence[float]],
    values: Sequence[float],
    *,
    title: str,
    label: str,
    colors: str = "viridis",
) -> None:
    """Draw a value at each place, with a bar of colors.

    Args:
        axes: Where to draw.
        places: Longitudes and latitudes, in degrees.
        values: One for each place.
        title: What the map shows.
        label: Name and unit of the value.
        colors: Name of a color map of matplotlib.
    """
    drawn = axes.scatter(
        *places, c=values, s=min(30.0, max(4.0, 24_000.0 / len(values))), marker="s", cmap=colors, linewidths=0
    )
    bar = axes.figure.colorbar(drawn, ax=axes, label=label, shrink=0.85)
    bar.outline.set_visible(False)
    axes.set_title(title, fontsize=9)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_xlabel("longitude, degrees")
    axes.set_ylabel("latitude, degrees")


def mark_places(
    axes: Axes, places: tuple[Sequence[float], Sequence[float]], *, color: str, label: str, marker: str = "o"
) -> None:
    """Mark places on a map; the rim of the marks shows on any color."""
    axes.scatter(*places, s=16, marker=marker, facecolors=color, edgecolors="black", linewidths=0.6, label=label)
