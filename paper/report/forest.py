"""A part of a claim as a picture in a line of text: its effect, interval, and what it is held against."""

from markupsafe import Markup

from paper.schema.figure import Part

__all__ = ["draw_part"]

_WIDTH, _HEIGHT, _RADIUS = 180, 18, 3.5


def draw_part(part: Part) -> Markup:
    """Draw an interval with its effect as SVG, zero in the middle; a dashed line stands at the bound of the part.

    Each part has a scale of its own, as parts have different units.
    """
    if part.effect is None:
        return Markup()
    low, high = (part.effect if end is None else end for end in (part.low, part.high))
    largest = max(abs(each) for each in (low, high, part.effect, part.bound)) or 1.0

    def place(value: float) -> float:
        return round(_WIDTH / 2 * (1.0 + 0.94 * value / largest), 1)

    middle = _HEIGHT / 2
    lines = [_line(place(0.0), 0, place(0.0), _HEIGHT, "zero")]
    if part.bound:
        lines.append(_line(place(part.bound), 0, place(part.bound), _HEIGHT, "bound"))
    lines.append(_line(place(low), middle, place(high), middle, "interval"))
    dot = Markup('<circle cx="{}" cy="{}" r="{}"/>').format(place(part.effect), middle, _RADIUS)
    return Markup('<svg class="forest {}" width="{}" height="{}" role="img" aria-label="{}">{}{}</svg>').format(
        part.status, _WIDTH, _HEIGHT, part.what, Markup("").join(lines), dot
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(kind, x1, y1, x2, y2)
