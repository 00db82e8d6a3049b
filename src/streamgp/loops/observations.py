"""Observations: points with their outcomes, and pairs of points that were compared."""

import difflib
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.acquisition import AbstractSpace
from streamgp.checks import to_double
from streamgp.errors import OptionError, ShapeError, SupportError, UnsupportedError
from streamgp.loops.outcomes import Outcome
from streamgp.storage import register
from streamgp.tables.values import split_bounds

__all__ = ["Observations", "find_known", "no_observations", "observe_points", "read_observations"]

# Outcomes that differ by less than this share are the same.
_ROUNDING = 1e-12


@register
@final
@dataclass(frozen=True, eq=False)
class Observations:
    """Outcomes of points, in the order in which they were told.

    Attributes:
        points: As the loop keeps them.
        y: Outcomes in the user's units; NaN for what was not measured, and a row of NaN for an evaluation that failed.
        constants: The total count of each Binomial outcome, or the noise variance of each Gaussian one where it is
            known; NaN for others.
        pairs: Compared points, the preferred one first.
        sides: Negative where an outcome is at most the number that was told, positive where it is at least that; None
            where all are the numbers themselves.
        gradients: Slopes of the first outcome in the inputs of the model, NaN where they are not known; None if none
            were told.
    """

    points: Tensor
    y: Float[Tensor, "n o"]
    constants: Float[Tensor, "n o"]
    pairs: Tensor
    sides: Float[Tensor, "n o"] | None = None
    gradients: Float[Tensor, "n d"] | None = None

    @property
    def is_success(self) -> Bool[Tensor, " n"]:
        """Mark evaluations that succeeded: those with an outcome, if not all of them."""
        return ~self.y.isnan().all(-1)

    @property
    def is_informative(self) -> Bool[Tensor, " n"]:
        """Mark evaluations that tell something: those that succeeded, out of at least one trial."""
        return self.is_measured.any(-1)

    @property
    def is_measured(self) -> Bool[Tensor, "n o"]:
        """Mark outcomes that tell something: those that were measured, out of at least one trial."""
        return ~self.y.isnan() & (self.constants != 0)

    def has_bounds(self, output: int) -> bool:
        """Tell whether no more than a bound is known of some outcomes."""
        return self.sides is not None and output < self.sides.shape[-1] and bool((self.sides[:, output] != 0).any())

    @property
    def are_alike(self) -> bool:
        """Tell whether all of several outcomes are the same, up to rounding, and out of the same number of trials."""
        if len(self.y) < 2:
            return False
        is_unknown = self.y.isnan()
        low = self.y.masked_fill(is_unknown, torch.inf).amin(0)
        high = self.y.masked_fill(is_unknown, -torch.inf).amax(0)
        is_same = (high - low <= _ROUNDING * torch.maximum(low.abs(), high.abs())) | (low > high)
        counts = self.constants.nan_to_num()
        return bool(is_same.all()) and bool((counts == counts[0]).all())

    @property
    def repeats(self) -> bool | None:
        """Tell whether points evaluated again had the same outcomes, up to rounding; None if there are none."""
        known = self.rows(self.is_informative)
        unique, index, counts = torch.unique(known.points, dim=0, return_inverse=True, return_counts=True)
        if len(unique) == len(index):
            return None
        shape = (len(unique), known.y.shape[-1])
        to = index.unsqueeze(-1).expand_as(known.y)
        least, most = (known.y.masked_fill(known.y.isnan(), end) for end in (torch.inf, -torch.inf))
        low = known.y.new_full(shape, torch.inf).scatter_reduce(0, to, least, "amin")
        high = known.y.new_full(shape, -torch.inf).scatter_reduce(0, to, most, "amax")
        is_same = (high - low <= _ROUNDING * torch.maximum(low.abs(), high.abs())) | (low > high)
        return bool(is_same[counts > 1].all())

    @property
    def failures(self) -> Tensor:
        """Points whose evaluation failed."""
        return self.points[~self.is_success]

    @property
    def num_told(self) -> int:
        """Number of evaluations and comparisons, failed ones included."""
        return len(self.points) + len(self.pairs)

    @property
    def num_numbers(self) -> int:
        """Number of numbers that are known: outcomes, and slopes, each of which tells as much."""
        known = self.is_informative
        return int(known.sum()) + (0 if self.gradients is None else int((~self.gradients[known].isnan()).sum()))

    def rows(self, kept: Any) -> "Observations":
        """Some of the evaluations, with all comparisons."""
        sides, gradients = (None if each is None else each[kept] for each in (self.sides, self.gradients))
        return Observations(self.points[kept], self.y[kept], self.constants[kept], self.pairs, sides, gradients)

    def with_outcomes(self, row: int, new: "Observations", number: int, is_new: Bool[Tensor, " o"]) -> "Observations":
        """Replace some outcomes of an evaluation.

        Args:
            row: Number of the evaluation.
            new: Evaluations that hold the outcomes.
            number: Which of these does.
            is_new: Marks the outcomes to be replaced.
        """
        y, sides = self.y.clone(), self.sides
        y[row] = torch.where(is_new, new.y[number], y[row])
        if sides is not None or new.sides is not None:
            sides = torch.zeros_like(y) if sides is None else sides.clone()
            others = torch.zeros_like(y[row]) if new.sides is None else new.sides[number]
            sides[row] = torch.where(is_new, others, sides[row])
        return replace(self, y=y, sides=sides)

    def after(self, num_points: int, num_pairs: int) -> "Observations":
        """Observations that were told after given numbers of evaluations and comparisons."""
        return replace(self.rows(slice(num_points, None)), pairs=self.pairs[num_pairs:])

    def join(self, other: "Observations") -> "Observations":
        """Both, one after the other."""
        return Observations(
            torch.cat([self.points, other.points]),
            torch.cat([self.y, other.y]),
            torch.cat([self.constants, other.constants]),
            torch.cat([self.pairs, other.pairs]),
            _joined(self.sides, other.sides, len(self.y), len(other.y), 0.0),
            _joined(self.gradients, other.gradients, len(self.y), len(other.y), torch.nan),
        )


def _joined(first: Tensor | None, second: Tensor | None, num_first: int, num_second: int, fill: float) -> Tensor | None:
    """Rows of both, where one of them may have none of its own."""
    like = first if first is not None else second
    if like is None:
        return None
    first = like.new_full((num_first, like.shape[-1]), fill) if first is None else first
    second = like.new_full((num_second, like.shape[-1]), fill) if second is None else second
    return torch.cat([first, second])


def no_observations(space: AbstractSpace, num_outcomes: int) -> Observations:
    """Before any data."""
    points = space.no_points()
    empty = torch.empty(0, num_outcomes, dtype=torch.float64)
    return Observations(points, empty, empty, points.new_empty(0, 2, *points.shape[1:]))


def read_observations(
    space: AbstractSpace,
    outcomes: Sequence[Outcome],
    labels: Sequence[str],
    X: Any,
    y: Any,
    *,
    names: Sequence[str],
    total_count: Any,
    noise_variance: Any,
    gradient: Any = None,
) -> Observations:
    """Check what a user tells.

    Args:
        space: Where the points are from.
        outcomes: What is observed of each.
        labels: What errors call these.
        X: The user's points.
        y: Outcomes `(n,)` or `(n, o)`, or by name; NaN for what was not measured, and for all of an evaluation that
            failed; texts such as "<0.5" for bounds.
        names: What the user calls the outcomes.
        total_count: Of Binomial outcomes; None for what the likelihood has.
        noise_variance: Of Gaussian outcomes, likewise.
        gradient: Slopes of the only outcome in the user's units.
    """
    points = space.read(X)
    new = observe_points(
        points, outcomes, labels, y, names=names, total_count=total_count, noise_variance=noise_variance
    )
    if gradient is None:
        return new
    return replace(new, gradients=_read_gradient(gradient, space, points, outcomes))


def observe_points(
    points: Tensor,
    outcomes: Sequence[Outcome],
    labels: Sequence[str],
    y: Any,
    *,
    names: Sequence[str],
    total_count: Any = None,
    noise_variance: Any = None,
    sides: Float[Tensor, "n o"] | None = None,
) -> Observations:
    """Check outcomes of points that the loop has; arguments as of `read_observations`, and the sides of bounds."""
    if not any(outcome.is_real for outcome in outcomes):
        y = _without_booleans(y)
    split = split_bounds(y) if sides is None else None
    y = y if split is None else split[0]
    rows = _read_outcomes(_columns_of(y, names), labels, num_rows=len(points))
    if split is not None:
        sides = _read_outcomes(_columns_of(split[1], names), labels, num_rows=len(points))
    if sides is not None:
        _check_bounds(outcomes, labels, sides)
    given = {"total_count": total_count, "noise_variance": noise_variance}
    columns = [
        _read_constants(outcome, points, {key: _of_outcome(value, names, j, key) for key, value in given.items()})
        for j, outcome in enumerate(outcomes)
    ]
    if total_count is not None and not any(one.constant == "total_count" for one in outcomes):
        raise OptionError(
            f"total_count belongs to Binomial outcomes, but the likelihood is {type(outcomes[0].likelihood).__name__}."
        )
    if noise_variance is not None and not any(one.constant == "noise_variance" for one in outcomes):
        raise OptionError(
            "noise_variance belongs to Gaussian outcomes whose noise is known, but the likelihood is "
            f"{type(outcomes[0].likelihood).__name__}. Use likelihood=streamgp.likelihoods.Gaussian(noise, "
            "is_learned=False), whose noise is that of other outcomes."
        )
    is_good = ~rows.isnan()
    constants = torch.stack(columns, dim=-1) if columns else rows
    for j, outcome in enumerate(outcomes):
        good = is_good[:, j]
        _check_support(outcome, labels[j], points[good], rows[good, j], constants[good, j])
    return Observations(points, rows, constants, points.new_empty(0, 2, *points.shape[1:]), sides)


def _check_bounds(outcomes: Sequence[Outcome], labels: Sequence[str], sides: Float[Tensor, "n o"]) -> None:
    for j, outcome in enumerate(outcomes):
        if not outcome.likelihood.is_gaussian and bool((sides[:, j] != 0).any()):
            raise UnsupportedError(
                f"Bounds such as '<0.5' are told of outcomes with Gaussian noise, but {labels[j]} has the likelihood "
                f"{type(outcome.likelihood).__name__}. Tell its outcomes as numbers."
            )


def _read_gradient(
    gradient: Any, space: AbstractSpace, points: Tensor, outcomes: Sequence[Outcome]
) -> Float[Tensor, "n d"]:
    """Slopes in the inputs of the model."""
    if len(outcomes) > 1 or not outcomes[0].likelihood.is_gaussian:
        raise UnsupportedError(
            "A gradient is told of a single outcome with Gaussian noise. Leave gradient out where there are several "
            "outcomes, counts or classes."
        )
    return space.read_slopes(gradient, points)


def find_known(told: Observations, new: Observations) -> tuple[list[int], dict[int, int]]:
    """Find evaluations that were told before, so that a table may grow and be told again.

    One that was told counts once. Outcomes that were measured later complete those of the same evaluation.

    Args:
        told: Before.
        new: Evaluations that may be among them.

    Returns:
        Numbers of new ones that are others, and the number of the earlier evaluation that each of some completes.
    """
    rows: dict[tuple[float, ...], list[int]] = {}
    for i, point in enumerate(told.points):
        rows.setdefault(_key(point), []).append(i)
    others, completing = [], {}
    failed, known = ~told.is_success, ~told.y.isnan()
    for k, point in enumerate(new.points):
        same, has_failed, is_known = rows.get(_key(point), []), not bool(new.is_success[k]), ~new.y[k].isnan()
        found = None
        for i in same:
            both = known[i] & is_known
            is_same = torch.equal(told.y[i][both], new.y[k][both])
            if bool(failed[i]) == has_failed and is_same and torch.equal(_sides(told, i)[both], _sides(new, k)[both]):
                found = i
                break
        if found is None:
            others.append(k)
            continue
        same.remove(found)
        if bool((is_known & ~known[found]).any()):
            completing[k] = found
    return others, completing


def _sides(observations: Observations, row: int) -> Float[Tensor, " o"]:
    """The sides of the outcomes of an evaluation that are bounds, zero for others."""
    return torch.zeros_like(observations.y[row]) if observations.sides is None else observations.sides[row]


def _key(point: Tensor) -> tuple[float, ...]:
    return tuple(point.reshape(-1).tolist())


def _without_booleans(y: Any) -> Any:
    """Outcomes in which True and False, which say whether something passed, are ones and zeros."""
    if isinstance(y, bool | np.bool_):
        return float(y)
    if isinstance(y, list | tuple):
        return [_without_booleans(one) for one in y]
    if isinstance(y, Mapping):
        return {name: _without_booleans(one) for name, one in y.items()}
    if hasattr(y, "select_dtypes"):  # a table of pandas
        return y.astype(dict.fromkeys(y.select_dtypes("bool").columns, float))
    return y.astype(float) if getattr(getattr(y, "dtype", None), "kind", None) == "b" else y


def _columns_of(y: Any, names: Sequence[str]) -> Any:
    """Outcomes that are given by name as columns; others as they are."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(y, pandas.DataFrame) and any(name in y.columns for name in names):
        y = {name: y[name].to_numpy() for name in y.columns}
    if isinstance(y, Sequence) and len(y) and all(isinstance(one, Mapping) for one in y):
        y = {name: [one.get(name, math.nan) for one in y] for name in {key: None for one in y for key in one}}
    if not isinstance(y, Mapping):
        return y
    known = {name: to_double(_without_none(y[name]), name).reshape(-1) for name in names if name in y}
    missing = [name for name in names if name not in y]
    misspelled = [
        name for name in missing if difflib.get_close_matches(name, [str(one) for one in y if one not in names])
    ]
    if misspelled or not known:
        raise OptionError(
            f"y must have an outcome {(misspelled or missing)[0]!r}, but has {', '.join(map(repr, y)) or 'none'}. The "
            f"outcomes are {', '.join(names)}; one that was not measured can be left out."
        )
    unknown = torch.full_like(next(iter(known.values())), torch.nan)
    return torch.stack([known.get(name, unknown) for name in names], dim=-1)


def _without_none(values: Any) -> Any:
    """Numbers with NaN for what is None."""
    if isinstance(values, list | tuple):
        return [math.nan if one is None else one for one in values]
    return math.nan if values is None else values


def _of_outcome(given: Any, names: Sequence[str], output: int, what: str) -> Any:
    """Select what is known of one of several outcomes: by name, in a column, or of all alike."""
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise OptionError(f"{what} names the outcome {unknown[0]!r}, but the outcomes are {', '.join(names)}.")
        return given.get(names[output])
    if given is None or len(names) == 1:
        return given
    values = to_double(given, what)
    return values[:, output] if values.dim() == 2 and values.shape[-1] == len(names) else values


def _read_outcomes(y: Any, labels: Sequence[str], *, num_rows: int) -> Float[Tensor, "n o"]:
    rows, o = to_double(y, "y"), len(labels)
    if num_rows == 1 and tuple(rows.shape) == ((o,) if o > 1 else ()):
        rows = rows.reshape(1, o)
    if o == 1 and tuple(rows.shape) == (num_rows,):
        rows = rows.unsqueeze(-1)
    if tuple(rows.shape) != (num_rows, o):
        wanted = f"({num_rows},)" if o == 1 else f"({num_rows}, {o}), {' and then '.join(labels)},"
        raise ShapeError(
            f"y must have shape {wanted} with a row for each of the {num_rows} points, but has shape "
            f"{tuple(rows.shape)}. A failed evaluation is a row of NaN."
        )
    return rows


def _check_support(outcome: Outcome, label: str, points: Tensor, y: Tensor, constants: Tensor) -> None:
    likelihood = outcome.likelihood.at_rows(points) if points.dim() == 1 else outcome.likelihood
    likelihood = outcome.likelihood_of_rows(likelihood, constants)
    try:
        likelihood.check_targets(y)
    except SupportError as error:
        infinite = y.isinf().nonzero().squeeze(-1)
        hint = f" Row {int(infinite[0])} is infinite." if len(infinite) else ""
        raise SupportError(
            f"Outcomes of {label} cannot be used. {error}{hint} Tell a failed evaluation as NaN."
        ) from None


def _read_constants(outcome: Outcome, points: Tensor, known: Mapping[str, Any]) -> Float[Tensor, " n"]:
    likelihood, name = outcome.likelihood, outcome.constant
    if name is None:
        return torch.full((len(points),), torch.nan, dtype=torch.float64)
    likelihood = likelihood.at_rows(points) if points.dim() == 1 else likelihood
    numbers = _read_numbers(known.get(name), getattr(likelihood, name), len(points), name)
    # The constructors refuse a total count that is no count, and noise that is not positive.
    checked: Tensor = getattr(likelihood.with_row_data(numbers), name)
    return checked


def _read_numbers(given: Any, default: Tensor, num_rows: int, name: str) -> Float[Tensor, " n"]:
    values = default.detach().cpu().double() if given is None else to_double(given, name)
    if values.dim() and values.shape != (num_rows,):
        raise ShapeError(
            f"{name} must be a number or have shape ({num_rows},), one for each outcome, but has shape "
            f"{tuple(values.shape)}."
        )
    return values.expand(num_rows).clone()
