"""Rows of ordinary tables as numbers, one after the other: dates, texts and missing values included."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from streamgp.checks import check_choice, check_count
from streamgp.errors import DTypeError, OptionError, ShapeError
from streamgp.storage import register
from streamgp.streaming.fields import date_format, is_missing, to_date, to_number

__all__ = ["Column", "StreamPreprocessor"]

KINDS = ("number", "date", "category")
_ORIGIN = datetime(1970, 1, 1)
_DAY, _YEAR, _WEEK = 86400.0, 365.2425, 7.0


@register
@final
@dataclass(frozen=True)
class Column:
    """What is known of a column.

    Attributes:
        name: Its name.
        kind: `"number"`, `"date"` or `"category"`.
        format: Of dates.
        has_hours: Whether dates have a time of day.
        categories: Texts that have a number of their own; all others share one.
        has_indicator: Whether a number says that a value is missing.
        num_values: Number of values so far.
        mean: Mean of numbers so far, or of days since 1970; missing ones are taken as it.
    """

    name: str
    kind: str
    format: str = ""
    has_hours: bool = False
    categories: tuple[str, ...] = ()
    has_indicator: bool = False
    num_values: int = 0
    mean: float = 0.0

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the numbers that it becomes."""
        if self.kind == "category":
            return tuple(f"{self.name}={category}" for category in (*self.categories, "other"))
        indicator = (f"{self.name} is missing",) if self.has_indicator else ()
        if self.kind == "number":
            return (self.name, *indicator)
        cycles = ("hour", "weekday", "day of year") if self.has_hours else ("weekday", "day of year")
        waves = tuple(f"{self.name} {cycle} {wave}" for cycle in cycles for wave in ("sine", "cosine"))
        return (self.name, *waves, *indicator)

    def read(self, value: Any) -> float | None:
        """A number, or a date in days since 1970; None where it is missing or something else."""
        if self.kind == "date":
            found = None if is_missing(value) else to_date(value, self.format)
            return None if found is None else (found - _ORIGIN).total_seconds() / _DAY
        number = None if is_missing(value) else to_number(_plain(value))
        return number if number is not None and math.isfinite(number) else None

    def learn(self, value: Any) -> "Column":
        """Count a value in the mean."""
        number = None if self.kind == "category" else self.read(value)
        if number is None:
            return self
        count = self.num_values + 1
        return replace(self, num_values=count, mean=self.mean + (number - self.mean) / count)

    def transform(self, value: Any) -> list[float]:
        """The numbers of a value."""
        if self.kind == "category":
            label = "" if is_missing(value) else str(value).strip()
            return [*(float(label == each) for each in self.categories), float(label not in self.categories)]
        number = self.read(value)
        numbers = [self.mean if number is None else number]
        if self.kind == "date":
            numbers += self._waves(number)
        return [*numbers, *([float(number is None)] if self.has_indicator else [])]

    def _waves(self, days: float | None) -> list[float]:
        """Sines and cosines of the cycles; zero, the middle of each, where the date is missing."""
        cycles = ([1.0] if self.has_hours else []) + [_WEEK, _YEAR]
        if days is None:
            return [0.0] * (2 * len(cycles))
        angles = [2.0 * math.pi * (days % length) / length for length in cycles]
        return [wave(angle) for angle in angles for wave in (math.sin, math.cos)]


@final
class StreamPreprocessor(TransformerMixin, BaseEstimator):
    """Turn rows of an ordinary table into numbers for a learner, online.

    The first rows say what each column is: numbers, dates, or texts, which are categories. From then on each row
    becomes the same numbers: a number itself; a date its day and the sine and cosine of hour, weekday and day of year;
    a text a one at its category, with one more for all that were not seen at first. A missing number or date is taken
    as the mean so far, and columns that had missing values at first say so with a one. Means are learned on with
    `partial_fit`; nothing else changes.

    ```python
    rows = [{"when": "2024-03-01 10:00", "city": "Oslo", "load": 3.2}, {"when": "2024-03-01 11:00", "city": "Bergen"}]
    StreamPreprocessor().fit_transform(rows)
    ```
    """

    def __init__(self, *, kinds: Any = None, exclude: Any = (), max_categories: Any = 20) -> None:
        """Start before the first row.

        Args:
            kinds: By the names of columns, `"number"`, `"date"` or `"category"`, where it should not be guessed.
            exclude: Names of columns to leave out.
            max_categories: Most categories of a column; the most frequent ones at first.
        """
        self.kinds = kinds
        self.exclude = exclude
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> "StreamPreprocessor":
        """Forget everything, and learn what the columns are.

        Args:
            X: Rows: a list of mappings, a DataFrame, or an array with one row for each.
            y: Not used.
        """
        self.columns_: tuple[Column, ...] = self._start(_records(X))
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> "StreamPreprocessor":
        """Learn the means of further rows; the first ones say what the columns are.

        Args:
            X: Rows, as in `fit`.
            y: Not used.
        """
        records = _records(X)
        columns = self.columns_ if "columns_" in vars(self) else self._start(records)
        for record in records:
            columns = tuple(column.learn(record.get(column.name)) for column in columns)
        self.columns_ = columns
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The numbers of rows, of double precision.

        Args:
            X: Rows, as in `fit`. A column that is absent is missing in all rows.
        """
        check_is_fitted(self, "columns_")
        rows = [[n for column in self.columns_ for n in column.transform(row.get(column.name))] for row in _records(X)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.get_feature_names_out()))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the numbers."""
        check_is_fitted(self, "columns_")
        return np.array([name for column in self.columns_ for name in column.outputs], dtype=object)

    def _start(self, records: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
        if not records:
            raise ShapeError("The first rows say what the columns are, but there are none. Pass at least one.")
        check_count(self.max_categories, "max_categories")
        names = list(dict.fromkeys(name for record in records for name in record if name not in self.exclude))
        kinds = dict(self.kinds or {})
        unknown = sorted(set(kinds) - set(names))
        if unknown or not names:
            raise OptionError(f"kinds names the columns {unknown}, but the columns are {names}. Name those there are.")
        return tuple(self._column(name, [record.get(name) for record in records], kinds.get(name)) for name in names)

    def _column(self, name: str, values: list[Any], kind: str | None) -> Column:
        present = [value for value in values if not is_missing(value)]
        format = date_format(present)
        if kind is None:
            is_number = all(to_number(_plain(value)) is not None for value in present)
            kind = "number" if is_number else "date" if format is not None else "category"
        if check_choice(kind, KINDS, f"the kind of {name!r}") == "date" and format is None:
            raise OptionError(
                f"The column {name!r} should hold dates, but {present[:1]} are in no format that is known."
            )
        if kind == "category":
            counts: dict[str, int] = {}
            for value in present:
                label = str(value).strip()
                counts[label] = counts.get(label, 0) + 1
            frequent = sorted(counts, key=lambda label: (-counts[label], label))[: self.max_categories]
            return Column(name, kind, categories=tuple(sorted(frequent)))
        column = Column(name, kind, format=format or "" if kind == "date" else "")
        numbers = [column.read(value) for value in values]
        has_hours = kind == "date" and any(number is not None and number % 1.0 for number in numbers)
        return replace(column, has_hours=has_hours, has_indicator=None in numbers)


def _records(X: Any) -> list[Mapping[str, Any]]:
    """Rows as mappings."""
    if type(X).__module__.startswith("pandas"):
        return X.to_dict("records")
    if isinstance(X, Mapping):
        return [X]
    rows = X.tolist() if isinstance(X, np.ndarray) and X.ndim == 2 else X
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise DTypeError(
            f"Rows must be a list of mappings, a DataFrame or an array with two axes, but are a {type(X).__name__}. "
            "Pass for example [{'temperature': 3.5, 'city': 'Oslo'}]."
        )
    if all(isinstance(row, Mapping) for row in rows):
        return list(rows)
    if not all(isinstance(row, Sequence) and not isinstance(row, str) for row in rows):
        raise DTypeError("Each row must be a mapping or a list of values. Pass one for each row.")
    return [{f"x{i}": value for i, value in enumerate(row)} for row in rows]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _fields(transformer: StreamPreprocessor) -> dict[str, Any]:
    learned = transformer.columns_ if "columns_" in vars(transformer) else None
    return {"parameters": transformer.get_params(deep=False), "columns": learned}


def _rebuild(parameters: dict[str, Any], columns: tuple[Column, ...] | None) -> StreamPreprocessor:
    transformer = StreamPreprocessor(**parameters)
    if columns is not None:
        transformer.columns_ = columns
    return transformer


register(StreamPreprocessor, name="preprocessing.StreamPreprocessor", to_fields=_fields, from_fields=_rebuild)
