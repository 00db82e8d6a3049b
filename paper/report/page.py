"""The page: HTML from a report, and writing it safely."""

import os
import tempfile
import textwrap
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from paper.engine.times import show_duration
from paper.report.forest import draw_part
from paper.report.report import Report
from paper.report.themes import DARK, LIGHT
from streamgp import __version__

__all__ = ["render_page", "write_page"]

# Letters of a claim in the summary.
_SHORT = 130


def render_page(report: Report) -> str:
    """A report as one HTML document that needs no other file and no network."""
    environment = Environment(
        loader=PackageLoader("paper.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = show_duration
    environment.filters["shorten"] = _shorten
    environment.filters["forest"] = draw_part
    return environment.get_template("page.html").render(report=report, light=LIGHT, dark=DARK, version=__version__)


def write_page(page: str, path: Path) -> None:
    """Write a page under a temporary name and rename it, so that no half-written file is left."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-") as directory:
        temporary = Path(directory) / path.name
        with temporary.open("w", encoding="utf-8") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


def _shorten(text: str) -> str:
    return textwrap.shorten(text, _SHORT, placeholder=" …")
