"""Fields of ordinary tables: numbers, dates, texts, and the usual words for nothing."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from streamgp.errors import ValueRangeError

__all__ = [
    "LARGEST",
    "check_decimal_points",
    "date_format",
    "date_formats",
    "is_missing",
    "read_number",
    "split_bounds",
    "to_bound",
    "to_date",
    "to_number",
    "zones_of",
]

# Squares of larger numbers overflow, so that nothing could be learned from them.
LARGEST = 1e150
_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3},\d{3}")
_BOUND = re.compile(r"(<=|>=|<|>|≤|≥)\s*(\S+)")
_MISSING = ("", "na", "n/a", "<na>", "nan", "nat", "null", "none", "?")
# Tried in this order, each on all values: where several fit as many, the first is taken.
_FORMATS = (
    "iso",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
)


def is_missing(value: object) -> bool:
    """Tell whether a field is absent, not a number, empty, or holds one of the usual words for nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return str(value).strip().lower() in _MISSING


def to_number(value: object) -> float | None:
    """A number, which may be infinite; None for what is not one."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if not isinstance(value, str | int | float | Decimal | Fraction) or (isinstance(value, str) and "_" in value):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:
        return math.inf


def to_bound(value: object) -> tuple[float, int] | None:
    """The number of a text such as "<0.5" or ">= 10", and its side: -1 for at most, 1 for at least; None for others."""
    found = _BOUND.fullmatch(value.strip()) if isinstance(value, str) else None
    number = None if found is None else to_number(found[2])
    if found is None or number is None or not math.isfinite(number):
        return None
    return number, -1 if found[1] in "<=≤" else 1


def split_bounds(values: Any) -> tuple[Any, Any] | None:
    """Numbers, and the sides of those that are bounds, zero for others; None if there is no bound among the values.

    Both have the structure of the values: lists, dictionaries, tables and arrays, in which texts are numbers, bounds or
    empty.

    Args:
        values: What may hold texts such as "<0.5".
    """
    values = _to_lists(values)
    return (_mapped(values, 0), _mapped(values, 1)) if _has_bound(values) else None


def _to_lists(values: Any) -> Any:
    """Tables and arrays that may hold texts as dictionaries and lists; all others as they are."""
    if hasattr(values, "columns") and hasattr(values, "items"):  # a table of pandas
        return {name: _to_lists(column) for name, column in values.items()}
    if isinstance(values, Mapping):
        return {name: _to_lists(one) for name, one in values.items()}
    if getattr(getattr(values, "dtype", None), "kind", None) in ("O", "U", "T") and hasattr(values, "tolist"):
        return values.tolist()
    return values


def _has_bound(values: Any) -> bool:
    if isinstance(values, Mapping):
        return any(map(_has_bound, values.values()))
    if isinstance(values, list | tuple):
        return any(map(_has_bound, values))
    return to_bound(values) is not None


def _mapped(values: Any, part: int) -> Any:
    """Numbers (part 0) or sides (part 1) in the place of values."""
    if isinstance(values, Mapping):
        return {name: _mapped(one, part) for name, one in values.items()}
    if isinstance(values, list | tuple):
        return [_mapped(one, part) for one in values]
    if not isinstance(values, str):
        return values if part == 0 else np.zeros(np.shape(values)).tolist()
    bound = to_bound(values)
    if bound is not None:
        return bound[part]
    number = math.nan if is_missing(values) else to_number(values)
    if number is None:
        raise ValueRangeError(f"A value must be a number, or a bound such as '<0.5' or '>= 10', but is {values!r}.")
    return number if part == 0 else 0


def read_number(fields: Mapping[str, Any], name: str, role: str) -> float | str:
    """A finite number, or what is wrong with it."""
    value = fields.get(name)
    if is_missing(value):
        return f"the {role} {name!r} is missing"
    number = to_number(value)
    if number is None:
        return f"the {role} {name!r} is {value!r} and not a number"
    if not math.isfinite(number):
        return f"the {role} {name!r} is not finite"
    if abs(number) > LARGEST:
        return f"the {role} {name!r} is {number:g}, and numbers beyond {LARGEST:g} cannot be learned from"
    return number


def check_decimal_points(values: Sequence[object], name: str, *, share: float = 1.0) -> None:
    """Refuse numbers with decimal commas, at least a share of the values: they would be taken for texts.

    Args:
        values: Those of a column that are not missing.
        name: Of the column.
        share: How many of them must be numbers if commas are read as points.

    Raises:
        ValueRangeError: If there is one.
    """
    with_comma = [value for value in values if isinstance(value, str) and _COMMA.fullmatch(value.strip())]
    num_others = sum(to_number(value) is not None for value in values)
    if with_comma and len(with_comma) + num_others >= share * len(values):
        number = with_comma[0].strip()
        if all(_THOUSANDS.fullmatch(value.strip()) for value in with_comma):
            raise ValueRangeError(
                f"The column {name!r} holds numbers with commas, such as {number!r}, which may stand for "
                f"{number.replace(',', '')} or for {number.replace(',', '.')}. Write them without commas for "
                "thousands, and with points for decimals: with pandas by read_csv(..., thousands=',') or "
                "read_csv(..., decimal=','), and to_csv."
            )
        raise ValueRangeError(
            f"The column {name!r} holds numbers with decimal commas, such as {number!r}. Write them with points, "
            f"{number.replace(',', '.')}: in a spreadsheet by its language, or with pandas by "
            "read_csv(..., decimal=',') and to_csv."
        )


def date_format(values: Sequence[object], *, share: float = 1.0) -> str | None:
    """The format in which most values are dates, at least a share of them; None if there is none."""
    formats = date_formats(values, share=share)
    return formats[0] if formats else None


def date_formats(values: Sequence[object], *, share: float = 1.0) -> list[str]:
    """The formats in which as many values are dates as in any other, at least a share of them."""
    counts = {each: sum(to_date(value, each) is not None for value in values) for each in _FORMATS}
    most = max(counts.values())
    return [each for each in _FORMATS if counts[each] == most] if values and most >= share * len(values) else []


def to_date(value: object, format: str, *, is_utc: bool = False) -> datetime | None:
    """A date in a format, `"iso"` or one of `datetime.strptime`; None for what is not one.

    Args:
        value: A text or a date.
        format: The format of texts.
        is_utc: Whether dates with a time zone are brought to UTC; without, zones are left out.
    """
    found = _with_zone(value, format)
    if found is not None and is_utc and found.tzinfo is not None:
        try:
            found = found.astimezone(UTC)
        except OverflowError:  # on the first or last day that there is
            return None
    return None if found is None else found.replace(tzinfo=None)


def zones_of(values: Sequence[object], format: str) -> set[timedelta | None]:
    """The distances from UTC of dates; None among them for those without a time zone."""
    dates = [_with_zone(value, format) for value in values]
    return {found.utcoffset() for found in dates if found is not None}


def _with_zone(value: object, format: str) -> datetime | None:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if not isinstance(value, str) or to_number(value) is not None:
        return None
    try:
        text = value.strip()
        return datetime.fromisoformat(text) if format == "iso" else datetime.strptime(text, format)
    except ValueError:
        return None
