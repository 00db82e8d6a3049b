"""Values of fields: numbers, and the usual words for nothing."""

import math
from collections.abc import Mapping
from typing import Any

from streamgp.streaming.fields import check_decimal_points, is_missing, to_number
from streamgp.streaming.rows import LARGEST

__all__ = ["check_decimal_points", "is_missing", "read_number", "to_number"]


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
