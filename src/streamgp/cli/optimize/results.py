"""Results of experiments, read from a table that somebody filled in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from streamgp.cli.error_handling import list_few
from streamgp.display import unescape_formula
from streamgp.errors import FileFormatError, StreamGPError
from streamgp.loops import LoopSettings, ParameterSpace
from streamgp.loops.state import LoopState
from streamgp.tables.lines import Lines
from streamgp.tables.records import Record, open_reader
from streamgp.tables.values import is_missing, read_number

__all__ = ["FAILED", "Results", "read_outcome", "read_results", "without_known"]

# What stands for an outcome where an experiment failed.
FAILED = "failed"


@final
@dataclass(frozen=True, eq=False)
class Results:
    """Experiments with their outcomes.

    Attributes:
        points: Values of the parameters, by name.
        y: Outcomes, one row for each experiment; NaN where it failed.
        num_open: Rows whose outcomes are empty yet.
    """

    points: tuple[dict[str, Any], ...]
    y: Tensor
    num_open: int

    @property
    def num_failed(self) -> int:
        """How many experiments failed."""
        return int(self.y.isnan().any(-1).sum())


def read_results(source: str, settings: LoopSettings) -> Results:
    """Read a table with a column for each parameter and each outcome; other columns are passed over.

    Rows without outcomes have not been done yet. An experiment that failed has the word `failed` instead of a number.

    Args:
        source: CSV or JSON lines; `-` for standard input.
        settings: Of the study.

    Raises:
        FileFormatError: If rows cannot be used; none is then.
    """
    space, outcomes = settings.space, settings.names
    assert isinstance(space, ParameterSpace)
    with Lines(source) as lines:
        wanted = (*space.column_names, *outcomes)
        reader = open_reader(lines, names=wanted)
        missing = [name for name in wanted if name not in reader.names]
        if missing:
            raise FileFormatError(
                f"{lines.name} has no column {missing[0]!r}; it has {', '.join(reader.names)}. It needs one for each "
                "parameter and each outcome, as the file of `streamgp optimize ask` has."
            )
        records = tuple(reader.records())
    points, rows, bad, num_open = [], [], [], 0
    for number, record in enumerate(records, start=1):
        found = _read_row(record, space, outcomes)
        if isinstance(found, str):
            bad.append(f"row {number} (line {record.line}): {found}")
        elif found is None:
            num_open += not _is_blank(record)
        else:
            points.append(found[0])
            rows.append(found[1])
    if bad:
        which = "A row" if len(bad) == 1 else f"{len(bad)} rows"
        raise FileFormatError(f"{which} cannot be used, so nothing was told: {list_few(bad)}")
    y = torch.tensor(rows, dtype=torch.float64).reshape(len(rows), len(outcomes))
    return Results(tuple(points), y, num_open)


def without_known(results: Results, state: LoopState, space: ParameterSpace) -> tuple[Results, int]:
    """Leave out rows that were told before, with the same outcomes, so that a table may grow and be told again.

    Returns:
        The others, and how many were left out.
    """
    told = Counter(_keys(state.observations.points, state.observations.y))
    is_new = []
    for key in _keys(space.read(list(results.points)), results.y):
        is_new.append(told[key] == 0)
        told[key] -= told[key] > 0
    kept = [i for i, one in enumerate(is_new) if one]
    points = tuple(results.points[i] for i in kept)
    return Results(points, results.y[kept], results.num_open), len(is_new) - len(kept)


def _keys(points: Tensor, y: Tensor) -> list[tuple[Any, ...]]:
    rows = zip(points.tolist(), y.tolist(), strict=True)
    return [(*point, *(None if value != value else value for value in outcome)) for point, outcome in rows]


def _read_row(
    record: Record, space: ParameterSpace, outcomes: Sequence[str]
) -> tuple[dict[str, Any], list[float]] | str | None:
    """A point with its outcomes; what is wrong with the row; or None if it has no outcomes yet."""
    fields = record.fields
    if fields is None:
        return record.issue
    cells = [fields.get(name) for name in outcomes]
    if all(is_missing(cell) for cell in cells):
        return None
    point = {name: unescape_formula(fields[name]) for name in space.column_names}
    empty = [name for name, value in point.items() if is_missing(value)]
    if empty:
        return f"the parameter {empty[0]!r} is missing"
    try:
        space.read([point])
    except StreamGPError as error:
        return str(error)
    if any(isinstance(cell, str) and cell.strip().lower() == FAILED for cell in cells):
        return point, [torch.nan] * len(outcomes)
    values = [read_outcome(fields, name) for name in outcomes]
    wrong = [value for value in values if isinstance(value, str)]
    return wrong[0] if wrong else (point, [value for value in values if isinstance(value, float)])


def read_outcome(fields: Mapping[str, Any], name: str) -> float | str:
    """Return an outcome of a row, or a sentence without its period that says what is wrong with it."""
    value = read_number(fields, name, "outcome")
    return f"{value}. Write {FAILED} if the experiment failed" if isinstance(value, str) else value


def _is_blank(record: Record) -> bool:
    return record.fields is not None and all(is_missing(value) for value in record.fields.values())
