"""Fields of ordinary tables: numbers, dates, texts, and the usual words for nothing."""

import math
import re
from collections.abc import Sequence
from datetime import date, datetime

from streamgp.errors import ValueRangeError

__all__ = ["check_decimal_points", "date_format", "is_missing", "to_date", "to_number"]

_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_MISSING = ("", "na", "n/a", "nan", "nat", "null", "none", "?")
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
    """Whether a field is absent, not a number, empty, or holds one of the usual words for nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return str(value).strip().lower() in _MISSING


def to_number(value: object) -> float | None:
    """A number, which may be infinite; None for what is not one."""
    if not isinstance(value, str | int | float) or (isinstance(value, str) and "_" in value):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:
        return math.inf


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
        raise ValueRangeError(
            f"The column {name!r} holds numbers with decimal commas, such as {number!r}. Write them with points, "
            f"{number.replace(',', '.')}: in a spreadsheet by its language, or with pandas by "
            "read_csv(..., decimal=',') and to_csv."
        )


def date_format(values: Sequence[object], *, share: float = 1.0) -> str | None:
    """The format in which most values are dates, at least a share of them; None if there is none."""
    counts = {each: sum(to_date(value, each) is not None for value in values) for each in _FORMATS}
    best = max(counts, key=counts.__getitem__)
    return best if values and counts[best] >= share * len(values) else None


def to_date(value: object, format: str) -> datetime | None:
    """A date in a format, `"iso"` or one of `datetime.strptime`; None for what is not one. Zones are left out."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if not isinstance(value, str) or to_number(value) is not None:
        return None
    try:
        text = value.strip()
        found = datetime.fromisoformat(text) if format == "iso" else datetime.strptime(text, format)
    except ValueError:
        return None
    return found.replace(tzinfo=None)
