"""Tables of numbers in CSV and Parquet files, one shard each."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from streamgp.errors import DatasetError, OptionError, UnsupportedError, ValueRangeError

__all__ = ["TableShard", "column_names", "read_columns"]

# One row in so many is held out, to score the fit.
_ROWS_OF_HELD_OUT = 10


@final
@dataclass(frozen=True)
class TableShard:
    """A function that loads the inputs and targets of one file.

    Attributes:
        path: The file.
        features: Columns of the inputs.
        target: Column of the targets.
        is_held_out: Whether to load the rows that are held out, or all others.
    """

    path: Path
    features: tuple[str, ...]
    target: str
    is_held_out: bool = False

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        """Load it."""
        table = read_columns(self.path, (*self.features, self.target))
        is_bad = ~np.isfinite(table).all(axis=1)
        if is_bad.any():
            raise ValueRangeError(
                f"{self.path}: {int(is_bad.sum())} of {len(table)} rows have missing or infinite values, the first "
                f"after {int(is_bad.argmax())} good ones. Drop those rows, or impute them."
            )
        chosen = (np.arange(len(table)) % _ROWS_OF_HELD_OUT == _ROWS_OF_HELD_OUT - 1) == self.is_held_out
        return np.ascontiguousarray(table[chosen, :-1]), np.ascontiguousarray(table[chosen, -1])


def column_names(path: Path) -> tuple[str, ...]:
    """Names of the columns of a file."""
    if not path.is_file():
        raise DatasetError(f"{path} is not a file. Name CSV or Parquet files.")
    if path.suffix == ".parquet":
        return tuple(_parquet().ParquetFile(path).schema_arrow.names)
    with path.open(newline="", encoding="utf-8-sig") as file:
        header = next(csv.reader(file), None)
    if not header:
        raise DatasetError(f"{path} is empty. A table begins with a line of column names.")
    return tuple(header)


def read_columns(path: Path, columns: Sequence[str]) -> np.ndarray:
    """Some columns of a file as numbers, one row for each of its rows; NaN where there is nothing."""
    missing = [name for name in columns if name not in column_names(path)]
    if missing:
        raise OptionError(
            f"{path} has no column {', '.join(map(repr, missing))}; it has {', '.join(map(repr, column_names(path)))}."
        )
    if path.suffix == ".parquet":
        table = _parquet().read_table(path, columns=list(columns))
        return np.column_stack([_to_numbers(path, name, table[name]) for name in columns])
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = next(reader)
        places = [header.index(name) for name in columns]
        rows = [_numbers(path, number, row, header, places) for number, row in enumerate(reader, start=2) if row]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))


def _numbers(path: Path, number: int, row: list[str], header: list[str], places: list[int]) -> list[float]:
    if len(row) != len(header):
        raise DatasetError(f"{path}, line {number}: {len(row)} cells, but the header has {len(header)}.")
    values = []
    for place in places:
        try:
            values.append(float(row[place]) if row[place].strip() else np.nan)
        except ValueError:
            raise DatasetError(
                f"{path}, line {number}: {header[place]!r} must be a number, but is {row[place]!r}. Encode texts as "
                "numbers, or leave the column out with --features."
            ) from None
    return values


def _to_numbers(path: Path, name: str, column: Any) -> np.ndarray:
    try:
        return np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"{path}: column {name!r} must hold numbers, but holds {column.type}. Encode texts as numbers, or leave "
            "the column out with --features."
        ) from error


def _parquet() -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise UnsupportedError(
            "Parquet files need pyarrow, which is not installed. Install it with: pip install 'streamgp[tables]'"
        ) from error
    return parquet
