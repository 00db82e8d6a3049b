"""Targets of ordinary tables: what they are, and those of rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from streamgp.errors import OptionError
from streamgp.tables.columns import MOST, is_free
from streamgp.tables.labels import to_labels
from streamgp.tables.values import check_decimal_points, is_missing, read_number, to_number

__all__ = [
    "LIKELIHOODS",
    "choose_likelihood",
    "count_labels",
    "outside_support",
    "read_label",
    "read_target",
    "refuse_texts",
    "written_differently",
]

LIKELIHOODS = ("gaussian", "student_t", "poisson", "negative_binomial", "binomial", "classes")
_COUNTS = ("poisson", "negative_binomial", "binomial")
# Fewer rows than these do not tell two classes from numbers that happen to be equal.
_ENOUGH_ROWS = 10


def choose_likelihood(values: Sequence[Any], name: str) -> str:
    """Tell from first targets what they are: classes if they are texts, truth values or two whole numbers.

    Everything else is taken as real numbers; counts are not guessed. Where nine in ten are numbers, the others are
    mistakes; where one in ten is at most, they are names of classes, too.

    Raises:
        OptionError: If there are numbers and texts in between.
    """
    present = [value for value in values if not is_missing(value)]
    check_decimal_points(present, name, share=MOST)
    texts = [value for value in present if _is_text(value)]
    numbers = [to_number(value) for value in present if not _is_text(value)]
    is_whole = all(number is not None and number.is_integer() for number in numbers)
    is_pair = is_whole and len(set(numbers)) <= 2 and len(numbers) >= _ENOUGH_ROWS
    if len(numbers) >= MOST * len(present):
        return "classes" if is_pair else "gaussian"
    if len(texts) >= MOST * len(present):
        num_different = len(set(map(str, texts)))
        if is_free(num_different, len(texts)):
            raise OptionError(
                f"The first {len(texts)} targets {name!r} are {num_different} different texts, such as {texts[0]!r}: "
                "names, dates or numbers with units, hardly labels. Write numbers without units, name another target, "
                "or pass the likelihood 'classes' if each is a label."
            )
        return "classes"
    raise OptionError(
        f"Of the first {len(present)} targets {name!r}, {len(numbers)} are numbers and the others not, such as "
        f"{texts[0]!r}. Pass the likelihood 'gaussian' if it holds numbers: rows without one are then predicted and "
        "not learned. Pass 'classes' if it holds labels."
    )


def refuse_texts(values: Sequence[Any], name: str) -> None:
    """Refuse first targets of which none is a number, where numbers are asked for."""
    present = [value for value in values if not is_missing(value)]
    check_decimal_points(present, name, share=MOST)
    if present and all(to_number(value) is None for value in present):
        raise OptionError(
            f"None of the first {len(present)} targets {name!r} is a number, but for instance {present[0]!r}. Pass the "
            "likelihood 'classes' if they are labels, or let more of the first rows say what they are."
        )


def read_target(fields: Mapping[Any, Any], name: Any, *, is_label: bool) -> tuple[Any, str, str]:
    """Return a target or None, why one that is there is taken as missing, and what is wrong with one that is bad."""
    value = fields.get(name)
    if is_label:
        return read_label(value), "", ""
    if is_missing(value):
        return None, "", ""
    if to_number(value) is None:
        return None, f"the target {name!r} is {value!r} and not a number", ""
    number = read_number(fields, name, "target")
    return (None, "", number) if isinstance(number, str) else (number, "", "")


def outside_support(target: Any, name: str, likelihood: Any, total_count: float | None, count_name: str) -> str:
    """Say why a target cannot have been observed; nothing if it can."""
    if likelihood not in _COUNTS:
        return ""
    for value, called in ((target, name), (total_count, count_name)):
        if value is not None and not (value >= 0 and float(value).is_integer()):
            return f"the count {called!r} is {value:g}, but must be a whole number that is not negative"
    if total_count is not None and target is not None and target > total_count:
        return f"the target {name!r} is {target:g}, more than its {total_count:g} trials"
    return ""


def read_label(value: Any) -> Any:
    """Return a label as Python's own; None where it is missing."""
    if is_missing(value) or isinstance(value, list | dict):
        return None
    if isinstance(value, datetime | np.datetime64 | np.timedelta64):
        return to_labels(np.asarray(value).reshape(1))[0]
    return value.item() if isinstance(value, np.generic) else value


def count_labels(values: Sequence[Any]) -> list[tuple[Any, int]]:
    """Return the labels among targets, the most frequent first, and how often they come."""
    return Counter(label for label in map(read_label, values) if label is not None).most_common()


def written_differently(labels: Sequence[Any]) -> list[list[str]]:
    """Return labels that differ only in capitals, or are the same number: True and TRUE, or 1 and 1.0."""
    groups: dict[object, list[str]] = {}
    for label in map(str, labels):
        number = to_number(label)
        groups.setdefault(label.casefold() if number is None else number, []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def _is_text(target: Any) -> bool:
    """Tell whether a target is no number; truth values are names of classes."""
    return isinstance(target, bool | np.bool_) or to_number(target) is None
