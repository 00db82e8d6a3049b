"""Labels of rows, as river's users give them: of several kinds, one by one or as a series."""

from collections.abc import Hashable
from datetime import datetime
from typing import Any

import numpy as np

from streamgp.errors import ArgumentTypeError, ShapeError, ValueRangeError
from streamgp.training.labels import is_missing, to_labels

__all__ = ["read_label", "read_labels"]


def read_labels(y: Any) -> list[Hashable]:
    """Labels of rows, from a series, an array or a list."""
    values = y if isinstance(y, list | tuple) else np.asarray(y)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ShapeError(
                f"y must be a pandas.Series of labels, one for each row of X, but has shape {values.shape}. Pass one "
                "column."
            )
        # Whole arrays of dates at once, as in tolist() those of nanoseconds are numbers.
        values = to_labels(values) if values.dtype.kind in "mM" else values.tolist()
    return [read_label(label) for label in values]


def read_label(label: Any) -> Hashable:
    """One label as Python's own number, text or date; other objects that can be told apart stay as they are."""
    if isinstance(label, datetime | np.datetime64 | np.timedelta64) and not is_missing(label):
        return to_labels(np.asarray(label).reshape(1))[0]
    if isinstance(label, np.generic):
        label = label.item()
    if is_missing(label):
        raise ValueRangeError(f"A label must not be missing, but is {label!r}. Leave out rows without a label.")
    if not isinstance(label, Hashable):
        raise ArgumentTypeError(
            f"A label must be something that dictionaries take for a key, but is {label!r}. Convert it, for instance "
            "with str or tuple."
        )
    return label
