"""What was told as a table, in memory and in files."""

import csv
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from streamgp.errors import FileFormatError, UnsupportedError

__all__ = ["observation_rows", "parse_number", "read_csv", "to_frame", "write_csv"]


def to_frame(rows: Any) -> Any:
    """A DataFrame of rows by name."""
    try:
        import pandas  # an extra, and slow to load
    except ImportError:
        raise UnsupportedError("A DataFrame needs pandas, which is not installed. Install it, or use rows.") from None
    if isinstance(rows, Tensor):
        rows = rows.tolist()
    return pandas.DataFrame(rows)


def observation_rows(X: Any, y: Tensor, columns: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
    """Points and outcomes, one dictionary for each evaluation.

    Args:
        X: Points as the user has them.
        y: Outcomes; NaN for a failure.
        columns: Names of what is set.
        names: Of the outcomes.
    """
    points = X.tolist() if isinstance(X, Tensor) else X
    rows = []
    for point, outcomes in zip(points, y.tolist(), strict=True):
        if isinstance(point, Mapping):
            named = dict(point)
        else:
            named = dict(zip(columns, point if isinstance(point, list | tuple) else [point], strict=True))
        rows.append(named | dict(zip(names, outcomes, strict=True)))
    return rows


def parse_number(text: str, what: str, *, is_whole: bool = False) -> float:
    """The number that a text is."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (is_whole and not number.is_integer()):
        raise FileFormatError(f"The table must have a {'whole ' * is_whole}number for {what}, but has {text!r}.")
    return number


def write_csv(rows: Sequence[Mapping[str, Any]], names: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Write rows by name, with a header; empty cells for failures."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, names)
        table.writeheader()
        table.writerows({name: "" if value != value else value for name, value in row.items()} for row in rows)


def read_csv(path: str | os.PathLike[str], names: Sequence[str]) -> list[dict[str, Any]]:
    """Read rows by name; columns beside those that are wanted are left out.

    Args:
        path: A file with a header.
        names: Columns that it must have.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:  # spreadsheets write a mark in front
            table = csv.DictReader(file, restval="")
            missing = [name for name in names if name not in (table.fieldnames or ())]
            if missing:
                raise FileFormatError(
                    f"{path} must have a column {missing[0]!r}, but has {', '.join(table.fieldnames or ['nothing'])}."
                )
            return [{name: row[name] for name in names} for row in table]
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path} cannot be read as a table ({error}).") from None
