"""The look of the pictures, and writing them safely."""

import os
import tempfile
from pathlib import Path

from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

__all__ = ["COLORS", "check_output", "draw_belief", "save_figure", "style_axes"]

# Okabe and Ito's palette, which stays distinct for color-blind readers.
COLORS = {
    "belief": "#0072B2",
    "first data": "#000000",
    "new data": "#D55E00",
    "truth": "#5A5A5A",
    "inducing": "#009E73",
}


def check_output(path: Path) -> str | None:
    """Return a sentence that says why no picture can be written to `path`, or None if one can."""
    directory = path.parent
    if not directory.is_dir():
        return f"The directory '{directory}' does not exist. Create it, or choose another place."
    if path.is_dir():
        return f"'{path}' is a directory. Add a file name, for example '{path / 'demo.png'}'."
    if not os.access(directory, os.W_OK):
        return f"The directory '{directory}' cannot be written to. Choose another place."
    formats = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in formats:
        return f"'{path.name}' must end in the name of a picture format: {', '.join(sorted(formats))}."
    return None


def draw_belief(axes: Axes, x: Float[Tensor, " n"], mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]) -> None:
    """Draw a mean with its band of two standard deviations."""
    color = COLORS["belief"]
    radius = 2 * variance.sqrt()
    axes.fill_between(x, mean - radius, mean + radius, color=color, alpha=0.2, linewidth=0, label="mean ± 2 sd")
    axes.plot(x, mean, color=color, linewidth=1.8, label="mean")


def style_axes(axes: Axes) -> None:
    """Leave out the frame lines that carry nothing, and draw a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure under a temporary name and rename it, so that no half-written file is left."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-") as directory:
        temporary = Path(directory) / path.name
        figure.savefig(temporary, dpi=160)
        temporary.replace(path)
