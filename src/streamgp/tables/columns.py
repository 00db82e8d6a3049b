"""Columns of ordinary tables as numbers: dates, texts and missing values included."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, final

import numpy as np

from streamgp.checks import check_choice
from streamgp.errors import OptionError, ShapeError
from streamgp.tables.values import (
    check_decimal_points,
    date_format,
    is_missing,
    read_number,
    to_date,
    to_number,
    zones_of,
)

__all__ = ["KINDS", "MOST", "Column", "Preprocessing", "is_free"]

KINDS = ("number", "date", "category", "text")
_ORIGIN = datetime(1970, 1, 1)
_DAY, _YEAR, _WEEK = 86400.0, 365.2425, 7.0
# The share of values that must be numbers for a column of numbers: the others are mistakes.
MOST = 0.9
# Texts are names, and not categories, if there are more than these and more than half of them are different.
_FEW_TEXTS = 20


@final
@dataclass(frozen=True)
class Column:
    """A column, with all that is known of it.

    Attributes:
        name: Its name.
        kind: `"number"`, `"date"`, `"category"`, or `"text"` for names and free texts, which are not used.
        format: Of dates.
        has_hours: Whether dates have a time of day.
        categories: Texts that have a number of their own; all others share one.
        has_indicator: Whether a number says that a value is missing.
        num_values: Number of values so far.
        mean: Mean of numbers so far, or of days since 1970; missing ones are taken as it.
        is_utc: Whether dates are brought to UTC, as their time zones differ; other zones are left out.
    """

    name: str
    kind: str
    format: str = ""
    has_hours: bool = False
    categories: tuple[str, ...] = ()
    has_indicator: bool = False
    num_values: int = 0
    mean: float = 0.0
    is_utc: bool = False

    @classmethod
    def from_values(cls, name: str, values: Sequence[Any], kind: str | None, *, max_categories: int) -> "Column":
        """Find out what a column is from its first values.

        Args:
            name: Its name.
            values: The values.
            kind: One of `KINDS`, or None to guess it.
            max_categories: Most texts that have a number of their own.
        """
        present = [value for value in values if not is_missing(value)]
        if kind in (None, "number"):
            check_decimal_points(present, name, share=MOST)
        num_numbers = sum(to_number(value) is not None for value in present)
        if kind is None and num_numbers >= MOST * len(present):
            kind = "number"
        format = date_format(present, share=MOST) if kind in (None, "date") else None
        if kind is None:
            is_name = is_free(len(set(map(str, present))), len(present))
            kind = "date" if format is not None else "text" if is_name else "category"
        check_choice(kind, KINDS, f"the kind of {name!r}")
        if kind == "text":
            return cls(name, kind)
        if kind == "category":
            counts = Counter(str(value).strip() for value in present)
            frequent = sorted(counts, key=lambda label: (-counts[label], label))[:max_categories]
            return cls(name, kind, categories=tuple(sorted(frequent)))
        if kind == "date" and format is None:
            raise OptionError(
                f"The column {name!r} should hold dates, but {present[:1]} are in no format that is known."
            )
        column = cls(name, kind, format=format or "", is_utc=format is not None and len(zones_of(present, format)) > 1)
        known = [number for number in map(column.read, present) if number is not None]
        return replace(
            column,
            has_hours=kind == "date" and any(number % 1.0 for number in known),
            has_indicator=len(present) < len(values),
            mean=sum(known) / len(known) if known else 0.0,  # until there are values that count
        )

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the numbers that it becomes."""
        if self.kind == "text":
            return ()
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
            found = None if is_missing(value) else to_date(value, self.format, is_utc=self.is_utc)
            return None if found is None else (found - _ORIGIN).total_seconds() / _DAY
        number = None if is_missing(value) else to_number(value)
        return number if number is not None and math.isfinite(number) else None

    def issue(self, fields: Mapping[str, Any]) -> str:
        """Say why the field of a record cannot be used; nothing if it can, or if it is missing."""
        value = fields.get(self.name)
        if is_missing(value) or self.kind == "text":
            return ""
        if self.kind == "number":
            number = read_number(fields, self.name, "feature")
            return number if isinstance(number, str) else ""
        if isinstance(value, list | dict):
            return f"the feature {self.name!r} is {value!r} and not a {self.kind}"
        if self.kind == "date" and self.read(value) is None:
            return f"the feature {self.name!r} is {value!r} and not a date like those before it"
        return ""

    def learn(self, value: Any) -> "Column":
        """Count a value in the mean."""
        number = self.read(value) if self.kind in ("number", "date") else None
        if number is None:
            return self
        count = self.num_values + 1
        return replace(self, num_values=count, mean=self.mean + (number - self.mean) / count)

    def transform(self, value: Any) -> list[float]:
        """The numbers of a value."""
        if self.kind == "text":
            return []
        if self.kind == "category":
            label = "" if is_missing(value) else str(value).strip()
            if isinstance(value, float) and value.is_integer() and label not in self.categories:
                label = str(int(value))  # whole numbers become others where a table has missing ones among them
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
@dataclass(frozen=True)
class Preprocessing:
    """Kinds of the columns of a table, and their means so far; a frozen value.

    Attributes:
        columns: The columns.
    """

    columns: tuple[Column, ...]

    @classmethod
    def from_records(
        cls, records: Sequence[Mapping[str, Any]], *, kinds: Mapping[str, str] | None = None, max_categories: int = 20
    ) -> "Preprocessing":
        """Find out what the columns of the first records are; their values do not count yet.

        Args:
            records: Records, at least one.
            kinds: By the names of columns, what they are, where it should not be guessed.
            max_categories: Most categories of a column; the most frequent ones.
        """
        if not records:
            raise ShapeError("The first rows say what the columns are, but there are none. Pass at least one.")
        names = list(dict.fromkeys(name for record in records for name in record))
        unknown = sorted(set(kinds or {}) - set(names))
        if unknown or not names:
            raise OptionError(f"kinds names the columns {unknown}, but the columns are {names}. Name those there are.")
        columns = []
        for name in names:
            values, kind = [record.get(name) for record in records], (kinds or {}).get(name)
            columns.append(Column.from_values(name, values, kind, max_categories=max_categories))
        return cls(tuple(columns))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the numbers of a record."""
        return tuple(name for column in self.columns for name in column.outputs)

    def learned(self, records: Sequence[Mapping[str, Any]]) -> "Preprocessing":
        """Count records in the means."""
        columns = self.columns
        for record in records:
            columns = tuple(column.learn(record.get(column.name)) for column in columns)
        return Preprocessing(columns)

    def issues(self, records: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
        """Records that hold values that cannot be used, counted from 0, and why each does."""
        found = [(index, column.issue(record)) for index, record in enumerate(records) for column in self.columns]
        return [(index, issue) for index, issue in found if issue]

    def transform(self, records: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """The numbers of records, one row for each."""
        rows = [[n for column in self.columns for n in column.transform(each.get(column.name))] for each in records]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.outputs))


def is_free(num_different: int, num_values: int) -> bool:
    """Tell names and free texts from categories, by how many of them are different."""
    return num_different > max(_FEW_TEXTS, num_values / 2)
