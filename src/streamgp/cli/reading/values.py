"""Values of fields: numbers, and the usual words for nothing."""

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["is_missing", "read_number", "to_number"]

_MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
# Squares of larger numbers overflow, so that nothing could be learned from them.
_LARGEST = 1e150


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
    if abs(number) > _LARGEST:
        return f"the {role} {name!r} is {number:g}, and numbers beyond {_LARGEST:g} cannot be learned from"
    return number


def is_missing(value: object) -> bool:
    """Whether a field is absent, empty, or holds one of the usual words for nothing."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _MISSING)


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
