"""Labels that users give to classifiers: text, numbers, or dates."""

from collections.abc import Hashable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from streamgp.errors import ArgumentTypeError, DTypeError, ValueRangeError

__all__ = ["check_kinds", "is_missing", "plain_dates", "read_labels", "to_array", "to_labels"]

# What datetime holds, and what files do.
_DATES = "datetime64[us]"


def read_labels(y: Any) -> np.ndarray:
    """Labels of rows as an array, with dates as `plain_dates` has them.

    Raises:
        ValueRangeError: If a label is missing, a number that is not whole, or a date that cannot be kept.
        ArgumentTypeError: If labels are of several kinds.
        DTypeError: If they are durations.
    """
    labels = np.asarray(y)
    if labels.dtype.kind == "O":
        if any(is_missing(label) for label in labels.flat):
            raise ValueRangeError("Labels must not be missing, but one is. Leave out rows without a label.")
        check_kinds(labels.ravel().tolist())
    if labels.dtype.kind == "f" and not (labels == np.floor(labels)).all():
        wrong = labels[labels != np.floor(labels)][0]
        raise ValueRangeError(
            f"Labels that are numbers must be whole, but one is {wrong}. Leave out rows without a label; real targets "
            "are for a regressor."
        )
    return plain_dates(labels)


def is_missing(label: Any) -> bool:
    """Tell whether a label is None, NaN, or what pandas has in place of one."""
    is_same = label == label
    return label is None or not (isinstance(is_same, bool | np.bool_) and is_same)


def to_labels(y: np.ndarray) -> list[Any]:
    """Labels as Python's own numbers, strings and dates."""
    return plain_dates(y).tolist()


def to_array(labels: Sequence[Hashable]) -> np.ndarray:
    """Python's own labels as an array."""
    return np.array(labels, dtype=_DATES if labels and isinstance(labels[0], datetime) else None)


def plain_dates(y: np.ndarray) -> np.ndarray:
    """Dates to the microsecond, without a time zone, for an array of dates; any other array as it is.

    Raises:
        ValueRangeError: If one is missing, has a time zone, or is finer than a microsecond or outside the years 1 to
            9999.
        DTypeError: If it is an array of durations.
    """
    if y.dtype.kind == "O" and len(y) and isinstance(y[0], date):
        zoned = [value for value in y if isinstance(value, datetime) and value.tzinfo is not None]
        if zoned:
            raise ValueRangeError(
                f"Labels that are dates must have no time zone, but one is {str(zoned[0])!r}. Leave the zone out with "
                "replace(tzinfo=None), tz_localize(None) for a column of pandas, or convert labels with str."
            )
        # From the text, which holds nanoseconds of pandas, too.
        y = np.array([np.datetime64(str(value)) for value in y])
    if y.dtype.kind == "m":
        raise DTypeError(
            "Labels must be text, numbers or dates, but are durations. Convert them, for instance with str."
        )
    if y.dtype.kind != "M":
        return y
    if np.isnat(y).any():
        raise ValueRangeError("Labels must not be missing, but one is NaT. Leave out rows without a label.")
    dates = y.astype(_DATES)
    if (dates.astype(y.dtype) != y).any() or not all(isinstance(each, datetime) for each in dates.tolist()):
        raise ValueRangeError(
            "Labels that are dates must lie in the years 1 to 9999 and be no finer than a microsecond, but "
            f"{str(y[0])!r} or another is not. Round them, or convert labels with str."
        )
    return dates


def check_kinds(labels: Sequence[Hashable]) -> None:
    """Refuse labels that cannot be sorted together."""
    if None in labels:
        raise ArgumentTypeError("Labels must be text or numbers, but one is None. Leave out rows without a label.")
    of_kind = {_kind(label): label for label in reversed(labels)}
    if len(of_kind) > 1:
        first = labels[0]
        other = next(label for kind, label in of_kind.items() if kind != _kind(first))
        raise ArgumentTypeError(
            f"Labels must all be text or all be numbers or all be dates, but {other!r} comes with {first!r}. Convert "
            "them, for instance with str."
        )


def _kind(label: Hashable) -> str:
    return "text" if isinstance(label, str) else "date" if isinstance(label, date) else "number"
