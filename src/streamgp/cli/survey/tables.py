"""Tables of a survey: the chosen places, and all places with predictions."""

from typing import NamedTuple

from torch import Tensor

from streamgp.cli.survey.options import SurveyOptions
from streamgp.cli.survey.places import SurveyPlace
from streamgp.cli.survey.pool import SurveyPool
from streamgp.pools import ResponsePrediction

__all__ = ["SurveyTable", "all_table", "next_table", "printed_table"]

_PREDICTED = ("predicted", "lower", "upper")


class SurveyTable(NamedTuple):
    """Cells as text.

    Attributes:
        header: Names of the columns.
        rows: Cells of each row.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def next_table(
    places: tuple[SurveyPlace, ...],
    pool: SurveyPool,
    prediction: ResponsePrediction | None,
    *,
    chosen: Tensor,
    options: SurveyOptions,
) -> SurveyTable:
    """The chosen places in the order of their ranks; without a prediction, its cells are empty.

    Args:
        places: All places.
        pool: The pool that was made of them.
        prediction: Of all members of the pool, or None.
        chosen: Members.
        options: Names of the columns.
    """
    rows = tuple(
        (str(rank), *_place_cells(places[int(pool.first[member])]), *_predicted_cells(prediction, member, options))
        for rank, member in enumerate(chosen.tolist(), start=1)
    )
    return SurveyTable(("rank", *_place_header(options), *_predicted_header(options)), rows)


def printed_table(table: SurveyTable, options: SurveyOptions) -> SurveyTable:
    """The table of chosen places, as it fits a terminal: fewer digits, and the interval in one column."""
    above = () if options.threshold is None else (f"above {options.threshold:g}",)
    header = (*table.header[:4], options.response, "95 % interval", *above)
    rows = []
    for rank, name, *others in table.rows:
        cells = [f"{float(cell):.2g}" if cell else "" for cell in others[2:]]
        places = (f"{float(cell):.6g}" for cell in others[:2])
        interval = f"{cells[1]} to {cells[2]}" if cells[1] else ""
        rows.append((rank, name, *places, cells[0], interval, *cells[3:]))
    return SurveyTable(header, tuple(rows))


def all_table(
    places: tuple[SurveyPlace, ...], pool: SurveyPool, prediction: ResponsePrediction, *, options: SurveyOptions
) -> SurveyTable:
    """All places in the order of the source, those that are one member included."""
    members = pool.member.tolist()
    rows = tuple(
        (
            *_place_cells(place),
            "yes" if pool.is_surveyed[member] else "no",
            *_predicted_cells(prediction, member, options),
        )
        for place, member in zip(places, members, strict=True)
    )
    return SurveyTable((*_place_header(options), "surveyed", *_predicted_header(options)), rows)


def _place_header(options: SurveyOptions) -> tuple[str, ...]:
    return (options.identifier or "row", *options.coordinates)


def _place_cells(place: SurveyPlace) -> tuple[str, ...]:
    return (place.name, *(str(value) for value in place.inputs[:2]))


def _predicted_header(options: SurveyOptions) -> tuple[str, ...]:
    return _PREDICTED if options.threshold is None else (*_PREDICTED, "probability_above")


def _predicted_cells(prediction: ResponsePrediction | None, member: int, options: SurveyOptions) -> tuple[str, ...]:
    if prediction is None:
        return ("",) * len(_predicted_header(options))
    values = [prediction.mean, prediction.lower, prediction.upper]
    if prediction.exceedance is not None:
        values.append(prediction.exceedance)
    return tuple(f"{float(value[member]):.4g}" for value in values)
