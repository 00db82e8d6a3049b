"""The colors of the page and of its pictures, on light and on dark screens."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

__all__ = ["DARK", "LIGHT", "TEXT_PAIRS", "Theme", "contrast"]

# Texts of the page and what they stand on: each pair is legible in both themes (WCAG 2, level AA).
TEXT_PAIRS = (
    ("ink", "page"),
    ("ink", "surface"),
    ("ink", "code"),
    ("muted", "page"),
    ("muted", "surface"),
    ("link", "page"),
    ("link", "surface"),
    ("reproduced", "reproduced-back"),
    ("partly", "partly-back"),
    ("not", "not-back"),
    ("none", "none-back"),
    ("partly", "surface"),
)


@final
@dataclass(frozen=True)
class Theme:
    """Colors for one kind of screen.

    Attributes:
        name: `"light"` or `"dark"`, as the media query `prefers-color-scheme` calls it.
        colors: Colors as `#rrggbb`, by what they are for.
    """

    name: str
    colors: Mapping[str, str]

    @property
    def picture_settings(self) -> dict[Any, Any]:  # matplotlib's types list every key that there is
        """Settings of matplotlib that make pictures fit the page."""
        ink, muted, surface, line = (self.colors[name] for name in ("ink", "muted", "surface", "line"))
        return {
            "axes.edgecolor": muted,
            "axes.facecolor": surface,
            "axes.labelcolor": ink,
            "axes.labelsize": 9,
            "axes.titlecolor": ink,
            "axes.titlesize": 10,
            "figure.facecolor": surface,
            "figure.edgecolor": surface,
            "font.size": 9,
            "grid.color": self.colors["grid"],
            "hatch.color": muted,
            "legend.edgecolor": line,
            "legend.facecolor": surface,
            "legend.fontsize": 8.5,
            "legend.framealpha": 0.85,
            "lines.color": ink,
            "patch.edgecolor": surface,
            "text.color": ink,
            "xtick.color": muted,
            "xtick.labelsize": 8.5,
            "ytick.color": muted,
            "ytick.labelsize": 8.5,
        }


LIGHT = Theme(
    "light",
    {
        "page": "#f7f6f2",
        "surface": "#ffffff",
        "code": "#f1f0eb",
        "ink": "#20252b",
        "muted": "#5a636d",
        "line": "#dcdad3",
        "grid": "#868f99",
        "link": "#0a5a9c",
        "reproduced": "#14613a",
        "reproduced-back": "#e1f1e7",
        "partly": "#7d5100",
        "partly-back": "#f9efd8",
        "not": "#992328",
        "not-back": "#fae5e4",
        "none": "#4f5862",
        "none-back": "#eceae4",
    },
)
DARK = Theme(
    "dark",
    {
        "page": "#13161a",
        "surface": "#1a1e23",
        "code": "#22272e",
        "ink": "#e2e5e9",
        "muted": "#a2abb5",
        "line": "#343b44",
        "grid": "#6d7782",
        "link": "#83bdf2",
        "reproduced": "#86d9a8",
        "reproduced-back": "#16311f",
        "partly": "#ecc26b",
        "partly-back": "#362a10",
        "not": "#f59a96",
        "not-back": "#3d1c1d",
        "none": "#b4bcc5",
        "none-back": "#282e35",
    },
)


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colors `#rrggbb`, between 1 and 21, as WCAG 2 defines it."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    red, green, blue = (_linear(int(color[start : start + 2], 16) / 255) for start in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(share: float) -> float:
    # From sRGB to light.
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
