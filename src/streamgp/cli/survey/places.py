"""Places of a survey, read from records: inputs, and positives of tests, a value or a count where one was surveyed."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

from streamgp.cli.error_handling import list_few
from streamgp.cli.survey.columns import SurveyColumns
from streamgp.cli.survey.options import SurveyOptions
from streamgp.errors import FileFormatError
from streamgp.tables.records import Record
from streamgp.tables.values import is_missing, read_number

__all__ = ["NOTHING", "Measurement", "Places", "SurveyPlace", "read_outcome", "read_places"]


class Measurement(NamedTuple):
    """Outcome of a measurement.

    Attributes:
        y: Positives, a value or a count; None for a place that has not been surveyed.
        constant: Number of tests, or variance of the noise; a place yet to be surveyed may have noise.
        is_empty_survey: Whether nobody was tested.
    """

    y: float | None = None
    constant: float | None = None
    is_empty_survey: bool = False


NOTHING = Measurement()


class SurveyPlace(NamedTuple):
    """One row.

    Attributes:
        row: Its number, from 1, without the header.
        name: What the user calls it; its number if there is no such column.
        inputs: Coordinates and covariates; None where a covariate is missing.
        outcome: What was measured.
        weight: How much it counts.
        cost: What a visit costs.
    """

    row: int
    name: str
    inputs: tuple[float | None, ...]
    outcome: Measurement = NOTHING
    weight: float = 1.0
    cost: float = 1.0


@final
@dataclass(frozen=True)
class Places:
    """All rows that can be used.

    Attributes:
        places: In the order of the source, without missing inputs.
        notes: What was mended or left out.
    """

    places: tuple[SurveyPlace, ...]
    notes: tuple[str, ...]


def read_places(records: Iterable[Record], columns: SurveyColumns, options: SurveyOptions) -> Places:
    """Read all rows; rows whose cells are all empty are passed over.

    Raises:
        FileFormatError: If there are rows that cannot be used, unless these may be left out, or no others.
    """
    places: list[SurveyPlace] = []
    bad: list[str] = []
    num_missing, row = 0, 0
    for record in records:
        if record.fields is not None and all(is_missing(value) for value in record.fields.values()):
            continue
        row += 1
        place, complaints = _read_place(row, record, columns, options)
        if complaints:
            bad.append(f"row {row} (line {record.line}): {', '.join(complaints)}")
            num_missing += place is not None
        else:
            assert place is not None
            places.append(place)
    if bad and not options.is_bad_skipped:
        raise FileFormatError(_refusal(bad, num_missing))
    notes = () if not bad else (f"Rows left out: {len(bad)}, {list_few(bad)}.",)
    if not places:
        raise FileFormatError(
            f"There are no places that could be used, and {len(bad)} bad rows. Pass a header, and one row for each "
            "place."
        )
    if options.imputation is None:
        return Places(tuple(places), notes)
    filled = _impute(places, columns)
    return replace(filled, notes=(*notes, *filled.notes))


def _read_place(
    row: int, record: Record, columns: SurveyColumns, options: SurveyOptions
) -> tuple[SurveyPlace | None, list[str]]:
    """A place and what is wrong with it; a place whose complaints are about missing covariates only can be mended."""
    fields = record.fields
    if fields is None:
        return None, [record.issue]
    inputs: list[float | None] = []
    complaints: list[str] = []
    missing: list[str] = []
    for name in columns.inputs:
        is_covariate = name in columns.covariates
        value = read_number(fields, name, "covariate" if is_covariate else "coordinate")
        inputs.append(value if isinstance(value, float) else None)
        if isinstance(value, str):
            is_fillable = is_covariate and is_missing(fields.get(name))
            (missing if is_fillable else complaints).append(value)
    outcome = read_outcome(fields, options)
    if isinstance(outcome, str):
        complaints.append(outcome)
        outcome = NOTHING
    weight, cost = _read_positive(fields, options.weights, "weight"), _read_positive(fields, options.costs, "cost")
    complaints.extend(value for value in (weight, cost) if isinstance(value, str))
    if isinstance(weight, str) or isinstance(cost, str) or complaints:
        return None, [*complaints, *missing]
    place = SurveyPlace(row, _name(fields, row, options), tuple(inputs), outcome, weight, cost)
    return place, [] if options.imputation is not None else missing


def _read_positive(fields: Mapping[str, Any], column: str | None, role: str) -> float | str:
    """A weight, which may be zero, or a cost, which may not; one where there is no such column."""
    if column is None:
        return 1.0
    value = read_number(fields, column, role)
    if isinstance(value, float) and (value < 0 or (role == "cost" and value == 0)):
        return (
            f"the {role} {column!r} is {value:g}, but must {'not be negative' if role == 'weight' else 'be positive'}"
        )
    return value


def _name(fields: Mapping[str, Any], row: int, options: SurveyOptions) -> str:
    if options.identifier is None:
        return str(row)
    value = fields.get(options.identifier)
    return "" if value is None else str(value).strip()


def _refusal(bad: Sequence[str], num_missing: int) -> str:
    which = "A row" if len(bad) == 1 else f"{len(bad)} rows"
    remedies = ["Mend the source"]
    if num_missing:
        remedies.append("fill missing covariates with --impute median")
    return f"{which} cannot be used: {list_few(bad)}. {', '.join(remedies)}, or leave such rows out with --skip-bad."


def _impute(places: Sequence[SurveyPlace], columns: SurveyColumns) -> Places:
    """Fill missing covariates with the median of their column."""
    medians: list[float] = []
    notes = []
    for j, name in enumerate(columns.inputs):
        present = [value for place in places if (value := place.inputs[j]) is not None]
        if not present:
            raise FileFormatError(f"The covariate {name!r} has no values, so it has no median. Leave it out.")
        medians.append(statistics.median(present))
        num_missing = len(places) - len(present)
        if num_missing:
            notes.append(f"Missing values of {name!r} filled with its median {medians[-1]:g}: {num_missing}.")
    filled = tuple(
        place._replace(
            inputs=tuple(
                median if value is None else value for value, median in zip(place.inputs, medians, strict=True)
            )
        )
        for place in places
    )
    return Places(filled, tuple(notes))


def read_outcome(fields: Mapping[str, Any], options: SurveyOptions) -> Measurement | str:
    """Read an outcome from the cells of a row, or say what is wrong with it."""
    if options.positives is not None and options.tested is not None:
        return _read_tests(fields, options.positives, options.tested)
    if options.count is not None:
        count = _read_count(fields, options.count)
        return count if isinstance(count, str) else Measurement(count)
    assert options.target is not None
    return _read_value(fields, options.target, options.noise)


def _read_tests(fields: Mapping[str, Any], positives: str, tested: str) -> Measurement | str:
    y, total = _read_count(fields, positives), _read_count(fields, tested)
    if isinstance(y, str):
        return y
    if isinstance(total, str):
        return total
    if total == 0 and not y:
        return Measurement(is_empty_survey=True)
    if y is None or total is None:
        if y is None and total is None:
            return NOTHING
        present, absent = (tested, positives) if y is None else (positives, tested)
        return f"{absent!r} is missing where {present!r} is not"
    if y > total:
        return f"{positives!r} is {y:g}, more than {tested!r}, which is {total:g}"
    return Measurement(y, total)


def _read_value(fields: Mapping[str, Any], target: str, noise: str | None) -> Measurement | str:
    y = None if is_missing(fields.get(target)) else read_number(fields, target, "target")
    if isinstance(y, str):
        return y
    if noise is None:
        return Measurement(y)
    if is_missing(fields.get(noise)):
        return NOTHING if y is None else f"the noise {noise!r} is missing where {target!r} is not"
    deviation = read_number(fields, noise, "noise")
    if isinstance(deviation, str):
        return deviation
    if deviation <= 0:
        return f"the noise {noise!r} is {deviation:g}, but a standard deviation must be positive"
    return Measurement(y, deviation**2)


def _read_count(fields: Mapping[str, Any], name: str) -> float | str | None:
    if is_missing(fields.get(name)):
        return None
    value = read_number(fields, name, "count")
    if isinstance(value, float) and not (value >= 0 and value.is_integer()):
        return f"the count {name!r} is {value:g}, but must be a whole number that is not negative"
    return value
