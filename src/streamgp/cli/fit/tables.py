"""Tables of numbers in CSV and Parquet files, one shard each."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from streamgp.cli.reading.lines import Lines
from streamgp.cli.reading.records import read_header
from streamgp.cli.reading.values import check_decimal_points, is_missing
from streamgp.errors import DatasetError, FileFormatError, OptionError, UnsupportedError, ValueRangeError

__all__ = ["TableShard", "column_names", "input_names", "read_columns", "read_labels"]

# What the columns begin with in which pandas keeps the labels of rows.
_INDEX = "__index_level_"

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
        if not len(X):
            raise DatasetError(f"{self.path} has no rows. Leave the file out.")
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
    if _is_parquet(path):
        names = tuple(_open_parquet(path).schema_arrow.names)
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise FileFormatError(f"{path} has several columns of the names {repeated}. Rename all but one.")
        return names
    if not path.stat().st_size:
        raise DatasetError(f"{path} is empty. A table begins with a line of column names.")
    with Lines(str(path)) as lines:
        return read_header(lines)[0]


def input_names(path: Path, target: str, features: Sequence[str] | None) -> tuple[str, ...]:
    """Columns to predict from: those that were asked for, or all of a file but the target."""
    if not features:
        names = tuple(name for name in column_names(path) if name != target)
        unnamed = [name for name in names if not name or name.startswith(_INDEX)]
        if unnamed:
            raise OptionError(
                f"{path} has a column named {unnamed[0]!r}, as pandas writes the numbers of rows. Write the table "
                "without it, with index=False, or name the columns to predict from with --features."
            )
        if not names:
            raise OptionError(f"{path} has no column but the target {target!r}. Add columns to predict it from.")
        return names
    repeated = sorted({name for name in features if list(features).count(name) > 1})
    if repeated or target in features:
        what = f"the target {target!r}" if target in features else f"{', '.join(map(repr, repeated))} more than once"
        raise OptionError(f"--features names {what}. Name each column to predict from once, without the target.")
    return tuple(features)


def read_columns(path: Path, columns: Sequence[str]) -> np.ndarray:
    """Some columns of a file as numbers, one row for each of its rows; NaN where there is nothing."""
    _check_columns(path, columns)
    if _is_parquet(path):
        table = _open_parquet(path).read(columns=list(columns))
        return np.column_stack([_to_numbers(path, name, table[name]) for name in columns])
    numbers = [_numbers(path, line, cells, columns) for line, cells in _read_rows(path, columns)]
    return np.array(numbers, dtype=np.float64).reshape(len(numbers), len(columns))


def read_labels(path: Path, column: str) -> np.ndarray:
    """A column of a file as texts, empty where there is nothing."""
    _check_columns(path, (column,))
    if _is_parquet(path):
        values = _open_parquet(path).read(columns=[column])[column].to_pylist()
        is_nothing = [value is None or (isinstance(value, float) and math.isnan(value)) for value in values]
        return np.array(["" if none else str(each) for none, each in zip(is_nothing, values, strict=True)], dtype=str)
    return np.array([cells[0].strip() for _, cells in _read_rows(path, (column,))], dtype=str)


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    known = column_names(path)
    missing = [name for name in columns if name not in known]
    if missing:
        raise OptionError(
            f"{path} has no column {', '.join(map(repr, missing))}; it has {', '.join(map(repr, known))}."
        )


def _read_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Cells of some columns of a CSV file, with the numbers of their lines."""
    with Lines(str(path)) as lines:
        names, delimiter = read_header(lines)
        places = [names.index(name) for name in columns]
        try:
            for row in csv.reader(lines, delimiter=delimiter):
                if not row:
                    continue
                line = lines.position.num_lines
                if len(row) != len(names):
                    raise DatasetError(f"{path}, line {line}: {len(row)} cells, but the header has {len(names)}.")
                yield line, [row[place] for place in places]
        except UnicodeDecodeError as error:
            raise DatasetError(
                f"{path}, line {lines.position.num_lines}: not text in UTF-8 ({error.reason}). Save the file as UTF-8."
            ) from None
        except csv.Error as error:
            raise DatasetError(
                f"{path}, line {lines.position.num_lines}: cannot be read as CSV ({error}). Write the table anew."
            ) from None


def _numbers(path: Path, line: int, cells: list[str], columns: Sequence[str]) -> list[float]:
    values = []
    for name, cell in zip(columns, cells, strict=True):
        try:
            number: float | None = float(cell)
        except ValueError:
            number = np.nan if is_missing(cell) else None
        if number is None or "_" in cell:  # which Python reads past
            check_decimal_points([cell], name)
            raise DatasetError(
                f"{path}, line {line}: {name!r} must be a number, but is {cell!r}. Encode texts as numbers, or leave "
                "the column out with --features."
            )
        values.append(number)
    return values


def _to_numbers(path: Path, name: str, column: Any) -> np.ndarray:
    values = column.to_numpy()
    try:
        if values.dtype.kind not in "Mm":  # times, whose units differ between files
            return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    raise DatasetError(
        f"{path}: column {name!r} must hold numbers, but holds {column.type}. Encode texts as numbers, and times as "
        "days for example, or leave the column out with --features."
    )


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1" or path.suffix.lower() == ".parquet"


def _open_parquet(path: Path) -> Any:
    package = _parquet()
    import pyarrow

    try:
        return package.ParquetFile(path)
    except pyarrow.ArrowException as error:
        raise FileFormatError(f"{path} cannot be read as Parquet ({error}). Write the table anew.") from error


def _parquet() -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise UnsupportedError(
            "Parquet files need pyarrow, which is not installed. Install it with: pip install 'streamgp[tables]'"
        ) from error
    return parquet
