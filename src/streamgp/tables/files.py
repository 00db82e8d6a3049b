"""Whole files as tables: CSV, compressed or not, and Parquet."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd

from streamgp.errors import DatasetError, FileFormatError, OptionError, UnsupportedError
from streamgp.tables.lines import Lines
from streamgp.tables.records import read_header
from streamgp.tables.values import check_decimal_points, is_missing

__all__ = ["TableFile"]

_PARQUET = b"PAR1"


@final
@dataclass(frozen=True)
class TableFile:
    """A file whose columns are read when they are asked for.

    Attributes:
        path: A CSV file with a header, compressed or not, or a Parquet file, known by its content.
    """

    path: Path

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        if not self.path.is_file():
            raise DatasetError(f"{self.path} is not a file. Name CSV or Parquet files.")
        if self._is_parquet:
            names = tuple(self._parquet().schema_arrow.names)
            repeated = sorted({name for name in names if names.count(name) > 1})
            if repeated:
                raise FileFormatError(f"{self.path} has several columns of the names {repeated}. Rename all but one.")
            return names
        if not self.path.stat().st_size:
            raise DatasetError(f"{self.path} is empty. A table begins with a line of column names.")
        with Lines(str(self.path)) as lines:
            return read_header(lines)[0]

    def read(self, columns: Sequence[str]) -> pd.DataFrame:
        """Read columns as they are; the index holds the numbers of lines, or of rows from 1.

        Raises:
            OptionError: If there is no such column.
            DatasetError: If a line is not a row of the table.
        """
        missing = [name for name in columns if name not in self.names]
        if missing:
            raise OptionError(
                f"{self.path} has no column {', '.join(map(repr, missing))}; it has {', '.join(map(repr, self.names))}."
            )
        if self._is_parquet:
            table = self._parquet().read(columns=list(columns))
            frame = pd.DataFrame({name: table[name].to_pandas() for name in columns}, columns=list(columns))
            return frame.set_axis(range(1, len(frame) + 1))
        lines, rows = [], []
        for line, cells in self._rows(columns):
            lines.append(line)
            rows.append(cells)
        return pd.DataFrame(rows, index=lines, columns=list(columns), dtype=object)

    def numbers(self, columns: Sequence[str]) -> np.ndarray:
        """Read columns as numbers, one row for each of the table; NaN where there is nothing.

        Raises:
            DatasetError: If a cell is neither a number nor missing.
        """
        frame = self.read(columns)
        convert = self._stored_numbers if self._is_parquet else self._written_numbers
        return np.column_stack([convert(frame[name]) for name in columns])

    def labels(self, column: str) -> np.ndarray:
        """Read a column as texts, empty where there is nothing."""
        values = self.read((column,))[column]
        if self._is_parquet:
            return np.where(values.isna(), "", values.astype(str)).astype(str)
        return np.array([cell.strip() for cell in values], dtype=str)

    def _written_numbers(self, cells: pd.Series) -> np.ndarray:
        if not any("_" in cell for cell in cells):  # which Python reads past
            try:
                return cells.to_numpy(dtype=np.float64)
            except ValueError:
                pass
        numbers = np.empty(len(cells))
        for row, (line, cell) in enumerate(cells.items()):
            try:
                numbers[row] = np.nan if is_missing(cell) else float(cell.replace("_", "?"))
            except ValueError:
                check_decimal_points([cell], str(cells.name))
                raise DatasetError(
                    f"{self.path}, line {line}: {cells.name!r} must be a number, but is {cell!r}. Encode texts as "
                    "numbers, or leave the column out with --features."
                ) from None
        return numbers

    def _stored_numbers(self, values: pd.Series) -> np.ndarray:
        try:
            if values.dtype.kind not in "Mm":  # times, whose units differ between files
                return values.to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            pass
        raise DatasetError(
            f"{self.path}: column {values.name!r} must hold numbers, but holds {values.dtype}. Encode texts as "
            "numbers, and times as days for example, or leave the column out with --features."
        )

    def _rows(self, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
        """Read cells with the numbers of their lines; pandas would fill rows that are too short without a word."""
        with Lines(str(self.path)) as lines:
            names, delimiter = read_header(lines)
            places = [names.index(name) for name in columns]
            try:
                for row in csv.reader(lines, delimiter=delimiter):
                    if row and len(row) != len(names):
                        raise DatasetError(
                            f"{self.path}, line {lines.position.num_lines}: {len(row)} cells, but the header has "
                            f"{len(names)}."
                        )
                    if row:
                        yield lines.position.num_lines, [row[place] for place in places]
            except UnicodeDecodeError as error:
                raise DatasetError(
                    f"{self.path}, line {lines.position.num_lines}: not text in UTF-8 ({error.reason}). Save the file "
                    "as UTF-8."
                ) from None
            except csv.Error as error:
                raise DatasetError(
                    f"{self.path}, line {lines.position.num_lines}: cannot be read as CSV ({error}). Write the table "
                    "anew."
                ) from None

    @cached_property
    def _is_parquet(self) -> bool:
        with self.path.open("rb") as file:
            return file.read(len(_PARQUET)) == _PARQUET or self.path.suffix.lower() == ".parquet"

    def _parquet(self) -> Any:
        try:
            import pyarrow
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise UnsupportedError(
                "Parquet files need pyarrow, which is not installed. Install it with: pip install 'streamgp[tables]'"
            ) from error
        try:
            return parquet.ParquetFile(self.path)
        except pyarrow.ArrowException as error:
            raise FileFormatError(f"{self.path} cannot be read as Parquet ({error}). Write the table anew.") from error
