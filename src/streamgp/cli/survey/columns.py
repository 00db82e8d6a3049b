"""Roles of the columns of a survey."""

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from streamgp.cli.survey.options import SurveyOptions
from streamgp.errors import OptionError
from streamgp.tables.records import Record
from streamgp.tables.values import is_missing, to_number

__all__ = ["SurveyColumns", "choose_survey_columns"]

# Columns of the files that are written.
_WRITTEN = ("rank", "surveyed", "predicted", "lower", "upper", "probability_above")


class SurveyColumns(NamedTuple):
    """Columns to predict from.

    Attributes:
        coordinates: The two of the map.
        covariates: All others.
        notes: What should be known about columns that were left out.
    """

    coordinates: tuple[str, ...]
    covariates: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """All of them, coordinates first."""
        return (*self.coordinates, *self.covariates)


def choose_survey_columns(names: Sequence[str], records: Sequence[Record], options: SurveyOptions) -> SurveyColumns:
    """Check the columns that are named, and find the covariates if none are.

    Without names, covariates are all other columns most of whose cells are numbers. A cell of these that is not a
    number is then a mistake, which reading the rows finds.

    Args:
        names: Of all columns.
        records: All rows.
        options: What is what.
    """
    named = _named(options)
    for role, name in named:
        if name not in names:
            raise OptionError(f"There is no column {name!r} for {role}.{_suggest(name, names)}")
    used = [name for _, name in named]
    repeated = sorted({name for name in used if used.count(name) > 1})
    if repeated:
        raise OptionError(f"The columns {repeated} are used twice. Name each column once.")
    for kept in (*options.coordinates, options.identifier):
        if kept in _WRITTEN:
            raise OptionError(f"The column {kept!r} has the name of one that is written. Rename it in the source.")
    if options.covariates is not None:
        return SurveyColumns(options.coordinates, options.covariates, ())
    others = [name for name in names if name not in used]
    covariates = tuple(name for name in others if name and _holds_numbers(records, name))
    return SurveyColumns(options.coordinates, covariates, _left_out(records, set(others) - set(covariates)))


def _named(options: SurveyOptions) -> list[tuple[str, str]]:
    single = {
        "--positives": options.positives,
        "--tested": options.tested,
        "--target": options.target,
        "--noise": options.noise,
        "--count": options.count,
        "--weights": options.weights,
        "--costs": options.costs,
        "--id": options.identifier,
    }
    return [
        *(("--coordinates", name) for name in options.coordinates),
        *(("--covariates", name) for name in options.covariates or ()),
        *((role, name) for role, name in single.items() if name is not None),
    ]


def _suggest(name: str, names: Sequence[str]) -> str:
    lower = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), list(lower), n=1)
    question = f" Did you mean {lower[near[0]]!r}?" if near else ""
    return f"{question} The columns are {', '.join(map(repr, names))}."


def _present(records: Sequence[Record], name: str) -> list[object]:
    values = [record.fields.get(name) for record in records if record.fields is not None]
    return [value for value in values if not is_missing(value)]


def _holds_numbers(records: Sequence[Record], name: str) -> bool:
    present = _present(records, name)
    return 2 * sum(to_number(value) is not None for value in present) > len(present)


def _left_out(records: Sequence[Record], names: set[str]) -> tuple[str, ...]:
    notes = []
    for name in sorted(names):
        if not name:
            notes.append("A column without a name is not used.")
        else:
            what = "holds text" if _present(records, name) else "is empty"
            notes.append(f"The column {name!r} {what} and is not used.")
    return tuple(notes)
