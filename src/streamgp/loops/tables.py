"""Tables of what was told, in memory and in files."""

import difflib
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from streamgp.display import unescape_formula
from streamgp.errors import (
    ArgumentTypeError,
    FileFormatError,
    OptionError,
    SaveError,
    ShapeError,
    StreamGPError,
    UnsupportedError,
)
from streamgp.tables.lines import Lines
from streamgp.tables.records import Record, open_reader, write_table
from streamgp.tables.values import to_bound

__all__ = ["named_rows", "observation_rows", "parse_number", "read_csv", "read_evaluations", "to_frame", "write_csv"]


def to_frame(rows: Any) -> Any:
    """A DataFrame of rows by name."""
    try:
        import pandas  # an extra, and slow to load
    except ImportError:
        raise UnsupportedError("A DataFrame needs pandas, which is not installed. Install it, or use rows.") from None
    if isinstance(rows, Tensor):
        rows = rows.tolist()
    return pandas.DataFrame(rows)


def named_rows(X: Any, names: Sequence[str], what: str) -> list[Mapping[str, Any]]:
    """Points as users write them, each as a dictionary: dictionaries, a table, or rows of values in their order.

    Args:
        X: One point or several.
        names: Of the values.
        what: What errors call the points.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return [{str(key): value for key, value in row.items()} for row in X.to_dict("records")]
    if isinstance(X, Mapping):
        return [X]
    if isinstance(X, Tensor) or type(X).__module__ == "numpy":
        X = X.tolist()
    if not isinstance(X, Sequence) or isinstance(X, str):
        raise ArgumentTypeError(
            f"{what} must be a dictionary, a list of them, a table, or rows of values in the order of the "
            f"parameters {', '.join(names)}, but is a {type(X).__name__}."
        )
    if (len(X) and not isinstance(X[0], Mapping | Sequence)) or (len(X) and isinstance(X[0], str)):
        X = [X]  # one point
    rows = []
    for row in X:
        if not isinstance(row, Mapping) and len(row) != len(names):
            raise ShapeError(
                f"{what} must have {len(names)} values in each row, of {', '.join(names)}, but one has {len(row)}."
            )
        rows.append(row if isinstance(row, Mapping) else dict(zip(names, row, strict=True)))
    return rows


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
    """Write rows by name, with a header; empty cells for failures.

    Texts that a spreadsheet would run as a formula get an apostrophe in front, which `read_csv` takes away.
    """
    cells = ([row[name] for name in names] for row in rows)
    try:
        write_table(Path(path), names, (["" if value != value else value for value in row] for row in cells))
    except OSError as error:
        raise SaveError(f"{path} cannot be written ({error.strerror}). Choose another place.") from None


def read_csv(path: str | os.PathLike[str], names: Sequence[str]) -> tuple[list[dict[str, str]], list[int]]:
    """Read rows by name; columns beside those that are wanted are left out, and so are rows of empty cells.

    Cells are separated by commas, or by semicolons or tabs where only these give the names.

    Args:
        path: A file with a header.
        names: Columns that it must have.

    Returns:
        The rows, and the line of the file in which each of them begins.
    """
    try:
        with Lines(os.fspath(path)) as lines:
            reader = open_reader(lines, "csv", names=names)
            for name in names:
                if name not in reader.names:
                    raise FileFormatError(_missing_column(path, name, reader.names))
            found = [record for record in reader.records() if not _is_blank(record)]
    except OptionError as error:  # there is no such file
        raise FileFormatError(str(error)) from None
    rows = []
    for record in found:
        if record.fields is None:
            raise FileFormatError(
                f"{path}, line {record.line}: {record.issue}. Write numbers with a decimal point, put texts in quotes "
                "that hold what separates cells, and leave cells empty instead of out."
            )
        rows.append({name: unescape_formula(record.fields[name]) for name in names})
    return rows, [record.line for record in found]


def _is_blank(record: Record) -> bool:
    return record.fields is not None and not any(cell.strip() for cell in record.fields.values())


def read_evaluations(
    path: str | os.PathLike[str],
    inputs: Sequence[str],
    outcomes: Sequence[str],
    parse: Callable[[Sequence[Sequence[str]]], Any],
) -> tuple[Any, Any]:
    """Read points and outcomes `(n, o)`, with NaN for empty cells and texts for bounds.

    Args:
        path: A file with a header.
        inputs: Columns of what was set.
        outcomes: Columns of what came of it.
        parse: Makes points of texts, and refuses those that are none.
    """
    rows, lines = read_csv(path, [*inputs, *outcomes])
    X = [[row[name] for name in inputs] for row in rows]
    y: list[list[float | str]] = [
        [_read_outcome(row[name], name, f"{path}, line {k}") for name in outcomes]
        for row, k in zip(rows, lines, strict=True)
    ]
    if not rows:
        return parse(X), torch.empty(0, len(outcomes), dtype=torch.float64)
    try:
        points = parse(X)
    except StreamGPError:
        for cells, line in zip(X, lines, strict=True):  # which of them it is
            try:
                parse([cells])
            except StreamGPError as error:
                raise FileFormatError(f"{path}, line {line}: {error}") from None
        raise
    return points, [row[0] for row in y] if len(outcomes) == 1 else y


def _missing_column(path: str | os.PathLike[str], name: str, columns: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, columns, n=1, cutoff=0.7)
    near = near or [each for each in columns if each.lower() == name.lower()]
    hint = f" Rename {near[0]!r} if it is meant." if near else ""
    return f"{path} must have a column {name!r}, but has {', '.join(columns)}.{hint}"


def _read_outcome(text: str, name: str, where: str) -> float | str:
    if to_bound(text) is not None:
        return text
    try:
        return float(text) if text.strip() else math.nan
    except ValueError:
        raise FileFormatError(
            f"{where}: outcomes in the column {name!r} must be numbers, bounds such as <0.5, or empty, but one is "
            f"{text!r}. Write a decimal point, and nothing where an evaluation failed."
        ) from None
