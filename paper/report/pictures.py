"""Pictures of a figure as parts of a page, one for light and one for dark screens."""

import base64
import io
from dataclasses import dataclass
from typing import final

import matplotlib as mpl

from paper.report.themes import DARK, LIGHT, Theme
from paper.schema.figure import Figure
from paper.schema.record import Records

__all__ = ["PicturePair", "draw_pictures"]

# Pixels of a style sheet in an inch, and how many points of a picture there are for each, for dense screens.
_PIXELS_PER_INCH = 96
_DENSITY = 2


@final
@dataclass(frozen=True)
class PicturePair:
    """A picture in two themes.

    Attributes:
        light: Address (`data:`) of the one for light screens.
        dark: Address of the one for dark screens.
        width: Width on the page, in pixels.
        height: Height on the page, in pixels.
    """

    light: str
    dark: str
    width: int
    height: int


def draw_pictures(figure: Figure, records: Records) -> PicturePair:
    """Draw a figure for light and for dark screens."""
    light, width, height = _draw(figure, records, LIGHT)
    dark, _, _ = _draw(figure, records, DARK)
    return PicturePair(light, dark, width=width, height=height)


def _draw(figure: Figure, records: Records, theme: Theme) -> tuple[str, int, int]:
    with mpl.rc_context():
        # The same page whatever the user has set.
        mpl.rcdefaults()
        mpl.rcParams.update(theme.picture_settings)
        picture = figure.draw(records)
        file = io.BytesIO()
        # Without loss: flat colors and thin lines then take about half the room of PNG, and no seams show.
        picture.savefig(file, format="webp", dpi=_PIXELS_PER_INCH * _DENSITY, pil_kwargs={"lossless": True})
    width, height = (round(inches * _PIXELS_PER_INCH) for inches in picture.get_size_inches())
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}", width, height
