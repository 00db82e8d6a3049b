"""The pool of a survey: places of equal inputs are one member."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from streamgp.cli.error_handling import list_few
from streamgp.cli.survey.places import Measurement, SurveyPlace

__all__ = ["SurveyPool", "make_pool"]


@final
@dataclass(frozen=True, eq=False)
class SurveyPool:
    """Members of the pool, and which places they are.

    Attributes:
        inputs: Coordinates, then covariates.
        y: Positives, values or counts; NaN for members that have not been surveyed.
        constants: Number of tests, variance of the noise, or number of counts that were added; NaN where unknown.
        first: The first place of each member.
        member: The member of each place.
        weights: How much each member counts, the sum over its places.
        costs: What a visit costs, the least of its places.
        names: What the first place of each member is called.
        notes: What was merged.
    """

    inputs: Float[Tensor, "n d"]
    y: Float[Tensor, " n"]
    constants: Float[Tensor, " n"]
    first: Int[Tensor, " n"]
    member: Int[Tensor, " p"]
    weights: Float[Tensor, " n"]
    costs: Float[Tensor, " n"]
    names: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_surveyed(self) -> Bool[Tensor, " n"]:
        """Mask of the members that have outcomes."""
        return ~self.y.isnan()


def make_pool(places: Sequence[SurveyPlace], response: str) -> SurveyPool:
    """Merge places of equal inputs.

    Positives and tests are added, and so are counts; values are averaged, with weights if their noise is known. A
    member of which one place was surveyed has been surveyed.

    Args:
        places: Without missing inputs.
        response: `"prevalence"`, `"value"` or `"rate"`.
    """
    groups: dict[tuple[float | None, ...], list[int]] = {}
    for index, place in enumerate(places):
        groups.setdefault(place.inputs, []).append(index)
    merged = [_merge([places[index].outcome for index in group], response) for group in groups.values()]
    member = torch.empty(len(places), dtype=torch.long)
    for i, group in enumerate(groups.values()):
        member[group] = i
    return SurveyPool(
        inputs=torch.tensor(list(groups), dtype=torch.float64),
        y=_to_tensor([outcome.y for outcome in merged]),
        constants=_to_tensor([outcome.constant for outcome in merged]),
        first=torch.tensor([group[0] for group in groups.values()]),
        member=member,
        weights=_to_tensor([sum(places[index].weight for index in group) for group in groups.values()]),
        costs=_to_tensor([min(places[index].cost for index in group) for group in groups.values()]),
        names=tuple(places[group[0]].name for group in groups.values()),
        notes=(*_describe_merged(places, list(groups.values()), response), *_describe_others(places, list(groups))),
    )


def _merge(outcomes: Sequence[Measurement], response: str) -> Measurement:
    seen = [outcome for outcome in outcomes if outcome.y is not None]
    if not seen:
        constants = [outcome.constant for outcome in outcomes if outcome.constant is not None]
        return Measurement(None, min(constants, default=None))
    y = [outcome.y for outcome in seen if outcome.y is not None]
    constants = [outcome.constant for outcome in seen if outcome.constant is not None]
    if response == "prevalence":
        return Measurement(sum(y), sum(constants))
    if response == "rate":
        return Measurement(sum(y), float(len(y)))
    if not constants:
        return Measurement(sum(y) / len(y))
    precision = sum(1.0 / constant for constant in constants)
    weighted = sum(value / constant for value, constant in zip(y, constants, strict=True))
    return Measurement(weighted / precision, 1.0 / precision)


def _to_tensor(values: Sequence[float | None]) -> Float[Tensor, " n"]:
    return torch.tensor([torch.nan if value is None else value for value in values], dtype=torch.float64)


def _describe_merged(places: Sequence[SurveyPlace], groups: Sequence[list[int]], response: str) -> list[str]:
    repeated = [group for group in groups if len(group) > 1]
    if not repeated:
        return []
    listed = [f"{places[index].row} as {places[group[0]].row}" for group in repeated for index in group[1:]]
    how = "averaged" if response == "value" else "added"
    return [
        f"Rows with the coordinates and covariates of others are one place with them: row {list_few(listed, ', ')}. "
        f"What was measured there is {how}."
    ]


def _describe_others(places: Sequence[SurveyPlace], inputs: Sequence[tuple[float | None, ...]]) -> list[str]:
    notes = []
    num_shared = len(inputs) - len({each[:2] for each in inputs})
    if num_shared:
        notes.append(f"Places with the coordinates of others but other covariates stay apart: {num_shared}.")
    empty = [str(place.row) for place in places if place.outcome.is_empty_survey]
    if empty:
        notes.append(f"Rows with nobody tested count as not surveyed: {list_few(empty, ', ')}.")
    return notes
