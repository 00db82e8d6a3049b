"""Text, tables for notebooks and axes of pictures for objects that show themselves."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamgp.errors import StreamGPError, UnsupportedError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "draw_band",
    "escape_formula",
    "html_rows",
    "html_table",
    "new_axes",
    "pyplot",
    "shown_moments",
    "shown_point",
    "unescape_formula",
    "with_uncertainty",
]

# Beginnings of what a spreadsheet runs as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

# Size of the line under a table, in pixels.
_WIDTH, _HEIGHT = 220, 36
# Predictions of more inputs, or of more numbers, are not shown in numbers.
_MOST_MOMENTS, _MOST_NUMBERS = 5, 20
# More rows than these are counted and not shown.
_MOST_ROWS = 20
_CELL = 'style="text-align:left;padding:1px 8px"'


def escape_formula(cell: Any) -> Any:
    """Put an apostrophe in front of a text that a spreadsheet would run; numbers and other cells stay as they are."""
    if not isinstance(cell, str) or not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell.replace("_", "="))  # Python reads 1_000 as a number, spreadsheets do not
    except ValueError:
        return f"'{cell}"
    return cell


def unescape_formula(cell: Any) -> Any:
    """Restore a cell as it was before `escape_formula`."""
    return cell[1:] if isinstance(cell, str) and cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell


def with_uncertainty(mean: float, std: float) -> str:
    """A number with its standard deviation, in as many digits as that says: `97.3 ± 0.4`."""
    if not math.isfinite(mean) or not math.isfinite(std) or std <= 0.0:
        return f"{mean:.4g}"
    exponent = math.floor(math.log10(std))
    decimals = -exponent if std / 10.0**exponent >= 2.0 else 1 - exponent
    if 0 <= decimals <= 6 and abs(mean) < 1e9:
        return f"{mean:.{decimals}f} ± {std:.{decimals}f}"
    return f"{mean:.4g} ± {std:.2g}"


def shown_point(point: Any) -> str:
    """A point in few digits: values by name, a row of numbers, or whatever else it is."""
    if isinstance(point, Mapping):
        return ", ".join(f"{name} {_number(value)}" for name, value in point.items())
    return _rounded(point)


def shown_moments(prediction: Any, num_inputs: int) -> str:
    """Mean and standard deviation where there are few; where there are many, what can be read."""
    many = f"{num_inputs} inputs: mean, std, variance, covariance"
    if num_inputs > _MOST_MOMENTS:
        return many
    try:
        mean, std = prediction.mean, prediction.std
    except StreamGPError as error:  # showing must not fail
        return f"{num_inputs} inputs: {error}"
    return f"mean {_rounded(mean)}, std {_rounded(std)}" if math.prod(mean.shape) <= _MOST_NUMBERS else many


def _rounded(values: Any) -> str:
    """Numbers in few digits, with their axes."""
    values = values.tolist() if hasattr(values, "tolist") else values
    return "[" + ", ".join(_rounded(each) for each in values) + "]" if isinstance(values, list) else _number(values)


def html_table(title: str, facts: Mapping[str, Any], *, line: Sequence[float] = ()) -> str:
    """A small table of facts by name, for a notebook; without scripts, and with all texts escaped.

    Args:
        title: Name of the object.
        facts: Facts about it.
        line: Numbers that are drawn as a line under it.
    """
    rows = "".join(
        f"<tr><th {_CELL}>{_text(name)}</th><td {_CELL}>{_text(value)}</td></tr>" for name, value in facts.items()
    )
    return f"<div><strong>{_text(title)}</strong><table>{rows}</table>{_sparkline(line)}</div>"


def html_rows(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of rows that have the same names, likewise."""
    names = list(rows[0]) if rows else []
    head = "".join(f"<th {_CELL}>{_text(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td {_CELL}>{_text(row[name])}</td>' for name in names)}</tr>" for row in rows[:_MOST_ROWS]
    )
    more = f"<p>and {len(rows) - _MOST_ROWS} more</p>" if len(rows) > _MOST_ROWS else ""
    return f"<div><strong>{_text(title)}</strong><table><tr>{head}</tr>{body}</table>{more}</div>"


def new_axes(axes: "Axes | None" = None, *, size: tuple[float, float] = (5.0, 3.5)) -> "Axes":
    """The axes to draw on; of a new figure by default."""
    if axes is not None:
        return axes
    _, made = pyplot().subplots(figsize=size, layout="constrained")
    return made


def pyplot() -> Any:
    """The module of matplotlib that makes figures, loaded when something is drawn."""
    try:
        import matplotlib.pyplot as plt  # slow to load
    except ImportError:
        raise UnsupportedError(
            "A picture needs matplotlib, which is not installed. Install it with: pip install matplotlib"
        ) from None
    return plt


def draw_band(axes: "Axes", x: Any, mean: Any, lower: Any, upper: Any, *, label: str) -> None:
    """Draw a line with a band around it."""
    axes.fill_between(x, lower, upper, color="tab:blue", alpha=0.2, linewidth=0)
    axes.plot(x, mean, color="tab:blue", label=label)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _text(value: Any) -> str:
    return html.escape(_number(value))


def _sparkline(values: Sequence[float]) -> str:
    known = [(i, float(value)) for i, value in enumerate(values) if math.isfinite(value)]
    if len(known) < 2:
        return ""
    low, high = min(value for _, value in known), max(value for _, value in known)
    across, up = (_WIDTH - 4) / max(len(values) - 1, 1), (_HEIGHT - 4) / ((high - low) or 1.0)
    points = " ".join(f"{2 + i * across:.1f},{_HEIGHT - 2 - (value - low) * up:.1f}" for i, value in known)
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="line">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    )
