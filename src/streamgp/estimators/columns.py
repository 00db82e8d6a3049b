"""Columns of data frames as numbers, with words, dates and gaps."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from streamgp.errors import ShapeError, ValueRangeError
from streamgp.storage import register
from streamgp.tables.columns import Column

__all__ = ["TableColumns", "as_table", "needs_reading"]

# Words that have a number of their own, the most frequent ones; with more, rare words cost a column each.
_MOST_CATEGORIES = 20


@register(name="batch.TableColumns")
@final
@dataclass(frozen=True)
class TableColumns:
    """Columns of a table and the numbers that each becomes; see `streamgp.tables.columns`.

    Attributes:
        columns: What is known of each, in the order of the table.
        kept: Places of the numbers that are used: those that differ between rows, and repeat no other.
    """

    columns: tuple[Column, ...]
    kept: tuple[int, ...] = ()

    @classmethod
    def of(cls, table: pd.DataFrame) -> "TableColumns":
        """Find out what the columns of a table are."""
        columns = tuple(_read_column(str(name), table.iloc[:, place]) for place, name in enumerate(table.columns))
        numbers = cls(columns)._all_numbers(table)
        spread = numbers.std(axis=0)
        scaled = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        # Of the two ones and zeros of a column with two words, one tells nothing that the other does not.
        lead = np.sign(scaled[np.abs(scaled).argmax(axis=0), np.arange(scaled.shape[1])])
        _, first = np.unique(np.round(scaled * lead, 9), axis=1, return_index=True)
        kept = tuple(sorted(int(place) for place in first if spread[place] > 0))
        if not kept:
            raise ShapeError(
                "X has no column of use: all are constant, or words of which nearly every row has its own. Pass "
                "columns that differ between rows and recur."
            )
        return cls(columns, kept)

    def numbers(self, table: pd.DataFrame) -> np.ndarray:
        """Turn rows into numbers `(n, d)`."""
        return self._all_numbers(table)[:, list(self.kept)]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers."""
        names = [name for column in self.columns for name in column.outputs]
        return tuple(names[place] for place in self.kept)

    def _all_numbers(self, table: pd.DataFrame) -> np.ndarray:
        parts = [_numbers(column, table.iloc[:, place]) for place, column in enumerate(self.columns)]
        return np.concatenate(parts, axis=1)


def needs_reading(X: Any) -> bool:
    """Tell whether inputs are a data frame with words, dates or gaps, or an array of numbers with gaps."""
    if isinstance(X, pd.DataFrame):
        return any(not _is_number(X.iloc[:, place]) or X.iloc[:, place].isna().any() for place in range(X.shape[1]))
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f" and bool(np.isnan(X).any())


def as_table(X: Any) -> pd.DataFrame:
    """Rows as a data frame."""
    return X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X)).rename(columns=lambda place: f"x{place}")


def _is_number(values: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values.dtype))


def _read_column(name: str, values: pd.Series) -> Column:
    if _is_number(values):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        known = numbers[np.isfinite(numbers)]
        mean = float(known.mean()) if len(known) else 0.0
        return Column(name, "number", has_indicator=bool(np.isnan(numbers).any()), num_values=len(known), mean=mean)
    kind = "category" if isinstance(values.dtype, pd.CategoricalDtype) else None
    return Column.from_values(name, values.tolist(), kind, max_categories=_MOST_CATEGORIES)


def _numbers(column: Column, values: pd.Series) -> np.ndarray:
    if column.kind == "number" and _is_number(values):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(numbers).any():
            raise ValueRangeError(
                f"The column {column.name!r} of X holds infinity. Leave these rows out, or put NaN for what is missing."
            )
        is_missing = np.isnan(numbers)
        filled = np.where(is_missing, column.mean, numbers)
        return np.stack([filled, is_missing.astype(float)] if column.has_indicator else [filled], axis=1)
    codes, different = pd.factorize(values, use_na_sentinel=False)
    rows = [column.transform(value) for value in different.tolist()]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(column.outputs))[codes]
