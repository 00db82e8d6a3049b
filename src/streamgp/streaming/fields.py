"""Fields of ordinary tables: numbers, dates, texts, and the usual words for nothing."""

import math
from collections.abc import Sequence
from datetime import date, datetime

__all__ = ["date_format", "is_missing", "to_date", "to_number"]

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
