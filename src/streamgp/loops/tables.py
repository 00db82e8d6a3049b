"""Tables of what was told, in memory and in files."""

import difflib
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition import AbstractSpace
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
from streamgp.tables.values import is_missing, read_number, to_bound

__all__ = [
    "FAILED",
    "Results",
    "TableCounts",
    "compared_columns",
    "named_rows",
    "parse_number",
    "point_rows",
    "read_comparisons",
    "read_outcome",
    "read_results",
    "to_frame",
    "write_csv",
]

# What stands for an outcome where an evaluation failed.
FAILED = "failed"
# What the columns of a comparison begin with: the point that was preferred, and the other one.
_COMPARED = ("winner", "loser")
# Rows that cannot be used which an error names.
_MOST_NAMED = 5


@final
@dataclass(frozen=True, eq=False)
class Results:
    """Evaluations that tables hold.

    Attributes:
        points: As the loop has them.
        y: Outcomes, one row for each; NaN for what was not measured, and for all of one that failed.
        sides: Negative where an outcome is at most the number that is there, positive where it is at least that.
        num_open: Number of rows without any outcome, which are not among these.
    """

    points: Tensor
    y: Float[Tensor, "n o"]
    sides: Float[Tensor, "n o"]
    num_open: int


@final
@dataclass(frozen=True)
class TableCounts:
    """Numbers of the rows of tables.

    Attributes:
        num_told: Learned as evaluations, or as comparisons.
        num_failed: Those among them that failed.
        num_completed: Added to an evaluation that was told in part.
        num_known: Told before, and left out.
        num_open: Without an outcome, and left out.
    """

    num_told: int
    num_failed: int
    num_completed: int
    num_known: int
    num_open: int


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


def point_rows(X: Any, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Points as the user has them, each as a dictionary.

    Args:
        X: Points: a tensor, or dictionaries.
        columns: Names of what is set.
    """
    points = X.tolist() if isinstance(X, Tensor) else X
    return [
        dict(one)
        if isinstance(one, Mapping)
        else dict(zip(columns, one if isinstance(one, list | tuple) else [one], strict=True))
        for one in points
    ]


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
    """Write rows by name, with a header; empty cells for what is not a number.

    Texts that a spreadsheet would run as a formula get an apostrophe in front, which is taken away by reading.
    """
    cells = ([row[name] for name in names] for row in rows)
    try:
        write_table(Path(path), names, (["" if value != value else value for value in row] for row in cells))
    except OSError as error:
        raise SaveError(f"{path} cannot be written ({error.strerror}). Choose another place.") from None


def read_results(source: str | os.PathLike[str], space: AbstractSpace, outcomes: Sequence[str]) -> Results:
    """Read a table with a column for each parameter and each outcome; other columns are passed over.

    An evaluation that failed has the word `failed` in place of an outcome, "<0.5" is a bound, and an empty cell was not
    measured. Rows without any outcome have not been evaluated yet.

    Args:
        source: CSV or JSON lines; `-` for standard input.
        space: Where points are from.
        outcomes: Their names.

    Raises:
        FileFormatError: If rows cannot be used; none is then.
    """
    name, records = _read_records(source, (*space.column_names, *outcomes))
    points, rows, bad, num_open = [space.no_points()], [], [], 0
    for record in records:
        found = _read_row(record, space, outcomes)
        if isinstance(found, str):
            bad.append(f"line {record.line}: {found}")
        elif found is None:
            num_open += not _is_blank(record)
        else:
            points.append(found[0])
            rows.append(found[1])
    _refuse_rows(name, bad)
    both = torch.tensor(rows, dtype=torch.float64).reshape(len(rows), len(outcomes), 2)
    return Results(torch.cat(points), both[..., 0], both[..., 1], num_open)


def compared_columns(space: AbstractSpace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns of a table of comparisons: of the points that were preferred, and of the others."""
    first, second = (tuple(f"{which}.{name}" for name in space.column_names) for which in _COMPARED)
    return first, second


def read_comparisons(source: str | os.PathLike[str], space: AbstractSpace) -> tuple[Tensor, Tensor]:
    """Read a table whose columns begin with `winner.` and `loser.`, and go on with the name of a parameter.

    Returns:
        The points that were preferred, and the others, as the loop has them.
    """
    sides = compared_columns(space)
    name, records = _read_records(source, (*sides[0], *sides[1]))
    found: tuple[list[Tensor], list[Tensor]] = ([space.no_points()], [space.no_points()])
    bad = []
    for record in records:
        points = [_read_point(record, space, columns) for columns in sides]
        wrong = [one for one in points if isinstance(one, str)]
        if wrong and not _is_blank(record):
            bad.append(f"line {record.line}: {wrong[0]}")
        for side, point in zip(found, points, strict=True):
            side.extend([point] if isinstance(point, Tensor) and not wrong else [])
    _refuse_rows(name, bad)
    return torch.cat(found[0]), torch.cat(found[1])


def _read_records(source: str | os.PathLike[str], wanted: Sequence[str]) -> tuple[str, tuple[Record, ...]]:
    """Read all records of a file that has some columns."""
    try:
        with Lines(os.fspath(source)) as lines:
            reader = open_reader(lines, names=wanted)
            for name in wanted:
                if name not in reader.names:
                    raise FileFormatError(_missing_column(lines.name, name, reader.names))
            return lines.name, tuple(reader.records())
    except OptionError as error:  # there is no such file
        raise FileFormatError(str(error)) from None


def _refuse_rows(name: str, bad: Sequence[str]) -> None:
    if bad:
        more = f"; and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
        which = "A row" if len(bad) == 1 else f"{len(bad)} rows"
        raise FileFormatError(
            f"{which} of {name} cannot be used, so nothing was told: {'; '.join(bad[:_MOST_NAMED])}{more}"
        )


def _read_row(
    record: Record, space: AbstractSpace, outcomes: Sequence[str]
) -> tuple[Tensor, list[tuple[float, float]]] | str | None:
    """A point with its outcomes and their sides; what is wrong with the row; or None if it has no outcomes yet."""
    fields = record.fields
    if fields is not None and all(is_missing(fields.get(name)) for name in outcomes):
        return None
    point = _read_point(record, space, space.column_names)
    if isinstance(point, str):
        return point
    assert fields is not None
    cells = [fields.get(name) for name in outcomes]
    if any(isinstance(cell, str) and cell.strip().lower() == FAILED for cell in cells):
        return point, [(math.nan, 0.0)] * len(outcomes)
    values = [
        (math.nan, 0.0) if is_missing(cell) else to_bound(cell) or read_outcome(fields, name)
        for cell, name in zip(cells, outcomes, strict=True)
    ]
    wrong = [value for value in values if isinstance(value, str)]
    if wrong:
        return wrong[0]
    return point, [value if isinstance(value, tuple) else (float(value), 0.0) for value in values]


def read_outcome(fields: Mapping[str, Any], name: str) -> float | str:
    """Return an outcome of a row, or a sentence without its period that says what is wrong with it."""
    value = read_number(fields, name, "outcome")
    if isinstance(value, str):
        return f"{value}. Write a decimal point, <0.5 for a bound, and {FAILED} if the evaluation failed"
    return value


def _read_point(record: Record, space: AbstractSpace, columns: Sequence[str]) -> Tensor | str:
    """A point of the loop, or what is wrong with it."""
    fields = record.fields
    if fields is None:
        return (
            f"{record.issue}. Write numbers with a decimal point, put texts in quotes that hold what separates cells, "
            "and leave cells empty instead of out"
        )
    cells = {name: unescape_formula(fields[name]) for name in columns}
    empty = [name for name, value in cells.items() if is_missing(value)]
    if empty:
        return f"the parameter {empty[0]!r} is missing"
    try:
        return space.read(space.parse([[str(value) for value in cells.values()]]))
    except StreamGPError as error:
        return str(error)


def _is_blank(record: Record) -> bool:
    return record.fields is not None and all(is_missing(value) for value in record.fields.values())


def _missing_column(path: str, name: str, columns: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, columns, n=1, cutoff=0.7)
    near = near or [each for each in columns if each.lower() == name.lower()]
    hint = f" Rename {near[0]!r} if it is meant." if near else ""
    return f"{path} must have a column {name!r}, but has {', '.join(columns)}.{hint}"
