"""Tables of numbers in CSV and Parquet files, one shard each."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from streamgp.errors import DatasetError, OptionError, UnsupportedError, ValueRangeError

__all__ = ["TableShard", "column_names", "read_columns", "read_labels"]

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
        is_label: Whether targets are labels, read as texts, or numbers.
        is_held_out: Whether to load the rows that are held out, or all others.
    """

    path: Path
    features: tuple[str, ...]
    target: str
    is_label: bool = False
    is_held_out: bool = False

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        """Load it."""
        X = read_columns(self.path, self.features)
        y = read_labels(self.path, self.target) if self.is_label else read_columns(self.path, (self.target,))[:, 0]
        is_bad = ~np.isfinite(X).all(axis=1) | ((y == "") if self.is_label else ~np.isfinite(y))
        if is_bad.any():
            raise ValueRangeError(
                f"{self.path}: {int(is_bad.sum())} of {len(X)} rows have missing or infinite values, the first "
                f"after {int(is_bad.argmax())} good ones. Drop those rows, or impute them."
            )
        chosen = (np.arange(len(X)) % _ROWS_OF_HELD_OUT == _ROWS_OF_HELD_OUT - 1) == self.is_held_out
        return np.ascontiguousarray(X[chosen]), np.ascontiguousarray(y[chosen])


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
    _check_columns(path, columns)
    if path.suffix == ".parquet":
        table = _parquet().read_table(path, columns=list(columns))
        return np.column_stack([_to_numbers(path, name, table[name]) for name in columns])
    header, rows = _read_rows(path)
    places = [header.index(name) for name in columns]
    numbers = [_numbers(path, line, row, header, places) for line, row in rows]
    return np.array(numbers, dtype=np.float64).reshape(len(numbers), len(columns))


def read_labels(path: Path, column: str) -> np.ndarray:
    """A column of a file as texts, empty where there is nothing."""
    _check_columns(path, (column,))
    if path.suffix == ".parquet":
        values = _parquet().read_table(path, columns=[column])[column].to_pylist()
        return np.array(["" if value is None else str(value) for value in values], dtype=str)
    header, rows = _read_rows(path)
    return np.array([row[header.index(column)].strip() for _, row in rows], dtype=str)


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in column_names(path)]
    if missing:
        raise OptionError(
            f"{path} has no column {', '.join(map(repr, missing))}; it has {', '.join(map(repr, column_names(path)))}."
        )


def _read_rows(path: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header of a CSV file, and its rows with the numbers of their lines."""

    def rows() -> Iterator[tuple[int, list[str]]]:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for line, row in enumerate(csv.reader(file), start=1):
                if line == 1 or not row:
                    continue
                if len(row) != len(header):
                    raise DatasetError(f"{path}, line {line}: {len(row)} cells, but the header has {len(header)}.")
                yield line, row

    header = list(column_names(path))
    return header, rows()


def _numbers(path: Path, number: int, row: list[str], header: list[str], places: list[int]) -> list[float]:
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
