"""The picture of the layers, made from the import graph of the package and the contract in pyproject.toml."""

import re
import tomllib
from pathlib import Path
from typing import Any

import grimp
import matplotlib
import matplotlib.pyplot as plt

_GRAY, _LINE, _FILL = "#7a7f87", "#4c6fb3", "#e8eefb"
# Boxes beside each other; a wider layer takes several lines, so that the picture can be read on a phone.
_MOST_COLUMNS = 3


def layers_of(pyproject: Path) -> list[list[str]]:
    """Packages in the order of the import contract, highest layer first."""
    contracts = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each["type"] == "layers"]
    return [re.findall(r"\w+", line) for line in contract["layers"]]


def draw_layers(pyproject: Path, output: Path) -> None:
    """Draw each package as a box, and an arrow from each package to what it imports directly."""
    graph = grimp.build_graph("streamgp", cache_dir=None)
    layers = [[name for name in layer if f"streamgp.{name}" in graph.modules] for layer in layers_of(pyproject)]
    lines = [layer[k : k + _MOST_COLUMNS] for layer in layers for k in range(0, len(layer), _MOST_COLUMNS)]
    place = {
        name: (column - (len(line) - 1) / 2, -row) for row, line in enumerate(lines) for column, name in enumerate(line)
    }
    with matplotlib.rc_context({"svg.hashsalt": "streamgp", "font.size": 9}):
        figure, axes = plt.subplots(figsize=(4.2, 0.6 * len(lines)))
        for first, (x, y) in place.items():
            for second, (u, v) in place.items():
                if v < y and graph.direct_import_exists(
                    importer=f"streamgp.{first}", imported=f"streamgp.{second}", as_packages=True
                ):
                    style = {"arrowstyle": "-", "color": _GRAY, "alpha": 0.25, "linewidth": 0.8}
                    axes.annotate("", (u, v + 0.2), (x, y - 0.2), arrowprops=style)
        for name, (x, y) in place.items():
            box = {"boxstyle": "round,pad=0.35", "facecolor": _FILL, "edgecolor": _LINE}
            axes.text(x, y, name, ha="center", va="center", bbox=box, color="#1d2433")
        axes.set(xlim=(-1.5, 1.5), ylim=(-len(lines) + 0.4, 0.6))
        axes.axis("off")
        output.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(output, transparent=True, bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)


def write_picture(app: Any) -> None:
    """Draw when the site is built."""
    source = Path(app.srcdir)
    draw_layers(source.parent / "pyproject.toml", source / "images" / "generated" / "layers.svg")


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_picture)
    return {"parallel_read_safe": True}
