"""State of a loop, as a frozen value, and its changes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from streamgp.acquisition import AbstractSpace
from streamgp.acquisition.rules.source_rule import KnowledgePerCost
from streamgp.checks import check_count
from streamgp.errors import NumericalError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.loops.exact_surrogate import ExactSurrogate, fit_exact
from streamgp.loops.observations import Observations, no_observations, read_observations
from streamgp.loops.pool_space import PoolSpace
from streamgp.loops.settings import LoopSettings
from streamgp.loops.source_surrogate import SourceSurrogate, fit_sources
from streamgp.loops.sparse_fitting import absorb_observations, fit_sparse, is_refit_due
from streamgp.loops.surrogate import AbstractSurrogate, SparseSurrogate
from streamgp.storage import register

__all__ = [
    "LoopState",
    "Prepared",
    "add_pending",
    "after_design",
    "cancel",
    "check_state",
    "compare",
    "compare_points",
    "complete",
    "current",
    "edit",
    "enqueue",
    "is_initial",
    "learned",
    "move_state",
    "num_initial",
    "observe",
    "refitted",
    "start_state",
    "take_queued",
]


@register
@final
@dataclass(frozen=True, eq=False)
class LoopState:
    """Everything that suggestions depend on but the settings.

    Attributes:
        observations: What was told.
        pending: Points that were asked for and not told yet.
        num_designed: How many points of the initial design were given out, in the current run.
        num_asks: How often a suggestion was made.
        surrogate: The model as of the last suggestion; None before the first that needed one.
        memory: What the rule remembers.
        asked: Points of the last suggestion.
        why: A few words on each of these.
        queued: Points that are suggested next, whatever the rule; None if there never were any.
    """

    observations: Observations
    pending: Tensor
    num_designed: int = 0
    num_asks: int = 0
    surrogate: AbstractSurrogate | None = None
    memory: Any = None
    asked: Tensor | None = None
    why: tuple[str, ...] = ()
    queued: Tensor | None = None


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """The suggestion that follows one answer to a question, worked out before the answer came.

    Attributes:
        before: The state in which the question is open.
        new: The answer.
        told: The state after it.
        asked: The state after the next suggestion.
        points: The suggestion.
    """

    before: LoopState
    new: Observations
    told: LoopState
    asked: LoopState
    points: Tensor

    def is_for(self, state: LoopState, new: Observations) -> bool:
        """Tell whether this is what was told, in the state for which it was worked out."""
        parts = ((self.new.points, new.points), (self.new.y, new.y), (self.new.constants, new.constants))
        return self.before is state and all(
            one.shape == other.shape and bool((one.eq(other) | (one.isnan() & other.isnan())).all())
            for one, other in parts
        )


def learned(state: LoopState, settings: LoopSettings) -> LoopState:
    """The state with a model of all that was told, if the loop learns as it is told; unchanged if not."""
    if not settings.surrogate.is_eager or is_initial(state, settings) or not settings.rule.innermost.needs_model:
        return state
    return refitted(state, settings) if bool(current(state, settings).is_informative.any()) else state


def start_state(settings: LoopSettings) -> LoopState:
    """Before any data."""
    space = settings.space
    observations = no_observations(space, len(settings.outcomes))
    return LoopState(observations, space.no_points(), memory=settings.rule.start())


def check_state(state: LoopState, settings: LoopSettings) -> None:
    """Refuse a state whose points are not of the space, or whose outcomes are not of the settings."""
    space, told = settings.space, state.observations
    none = space.no_points()
    kinds = {"pending": (state.pending, ()), "points": (told.points, ()), "pairs": (told.pairs, (2,))}
    kinds |= {name: (points, ()) for name in ("asked", "queued") if (points := getattr(state, name)) is not None}
    for name, (points, between) in kinds.items():
        is_of_space = points.dtype == none.dtype and points.shape[1:] == (*between, *none.shape[1:])
        if not is_of_space or not bool(torch.isfinite(points).all()):
            raise ShapeError(f"The {name} of a loop are not points of its space.")
        if isinstance(space, PoolSpace) and bool(((points < 0) | (points >= len(space.scaled))).any()):
            raise ValueRangeError(f"The {name} of a loop are not members of its pool.")
    if len(told.y) != len(told.points) or told.y.shape[-1] != len(settings.outcomes):
        raise ShapeError("The outcomes of a loop are not one row for each point, with a column for each outcome.")


def observe(state: LoopState, settings: LoopSettings, new: Observations) -> LoopState:
    """Add evaluations that were told together."""
    rule = settings.rule
    if isinstance(settings.space, PoolSpace):
        _check_new_members(state, settings, new)
    y, objective = new.y[:, 0], settings.objectives[0]
    memory = rule.remember(
        state.memory,
        y if objective.maximize else -y,
        is_initial=int(current(state, settings).is_informative.sum()) < num_initial(state, settings),
        num_dims=settings.space.num_dims,
    )
    after = replace(
        state,
        observations=state.observations.join(new),
        pending=settings.space.still_pending(state.pending, new.points),
    )
    return _remembering(after, settings, memory)


def compare(state: LoopState, settings: LoopSettings, winners: Any, losers: Any) -> LoopState:
    """Add comparisons, the preferred points and the others as the user has them, row by row."""
    return compare_points(
        state, settings, settings.space.read(winners, "winners"), settings.space.read(losers, "losers")
    )


def compare_points(state: LoopState, settings: LoopSettings, first: Tensor, second: Tensor) -> LoopState:
    """Add comparisons of points as the loop has them, the preferred ones first."""
    if first.shape != second.shape:
        raise ShapeError(
            f"winners and losers must have the same shape, one row of each for a comparison, but have shapes "
            f"{tuple(first.shape)} and {tuple(second.shape)}. Repeat a point that won several times."
        )
    told = state.observations
    new = replace(told.rows(slice(0, 0)), pairs=torch.stack([first, second], dim=1))
    pending = settings.space.still_pending(state.pending, torch.cat([first, second]))
    return replace(state, observations=told.join(new), pending=pending)


def edit(state: LoopState, settings: LoopSettings, row: int, y: Any) -> LoopState:
    """Replace outcomes of an evaluation, those that are named or all, or forget it if `y` is None; fit anew.

    Of comparisons, any other `y` says that the other point was preferred.
    """
    if settings.rule.start() is not None:
        raise UnsupportedError(
            f"The rule {type(settings.rule).__name__} has drawn conclusions from what was told, so it cannot be "
            "changed. Make a new optimizer, and tell it the right outcomes."
        )
    told, is_preference = state.observations, settings.is_preference
    what, size = ("comparisons", len(told.pairs)) if is_preference else ("evaluations", len(told.points))
    if not 0 <= check_count(row, "row", minimum=0) < size:
        raise ValueRangeError(f"row must be below {size}, the number of {what}, but is {row}.")
    if is_preference:
        is_other = torch.arange(size) != row
        swapped = torch.where(is_other.reshape(-1, 1, 1), told.pairs, told.pairs.flip(1))
        after = replace(told, pairs=told.pairs[is_other] if y is None else swapped)
    elif y is None:
        after = told.rows(torch.arange(size) != row)
    else:
        if isinstance(y, float) and math.isnan(y):
            y = [math.nan] * len(settings.outcomes)
        new = read_observations(
            settings.space,
            settings.outcomes,
            settings.labels,
            settings.space.show(told.points[row : row + 1]),
            y,
            names=settings.names,
            total_count=None,
            noise_variance=None,
        )
        named = [name in y for name in settings.names] if isinstance(y, Mapping) else [True] * new.y.shape[-1]
        after = told.with_outcomes(row, new, 0, torch.tensor(named))
    return replace(state, observations=after, surrogate=None)


def _stretch(before: AbstractSpace, after: AbstractSpace) -> Tensor:
    """Change of the first space's coordinates with those of another one, by which slopes are multiplied."""
    probes = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64).unsqueeze(-1).expand(3, before.num_dims)
    low, middle, high = after.inputs(after.read(before.show(before.inputs(probes))))
    if bool(((middle - low) - (high - middle)).abs().gt(1e-9 * (high - low).abs()).any()):
        raise UnsupportedError(
            "Slopes that were told cannot be taken to a parameter on another scale, or in steps. Make a new optimizer, "
            "and tell it what is known."
        )
    return 0.5 / (high - low)


def complete(state: LoopState, settings: LoopSettings, new: Observations, rows: Mapping[int, int]) -> LoopState:
    """Add outcomes that were measured later to evaluations that were told in part; fit anew.

    Args:
        state: Before.
        settings: Of the loop.
        new: Evaluations.
        rows: The number of the evaluation that each of some of these completes.
    """
    if not rows:
        return state
    told = state.observations
    for k, row in rows.items():
        told = told.with_outcomes(row, new, k, ~new.y[k].isnan())
    return replace(state, observations=told, surrogate=None)


def move_state(state: LoopState, settings: LoopSettings, space: AbstractSpace) -> LoopState:
    """The state in another range of the same parameters: all that was told is kept, and the model is fitted anew.

    Args:
        state: Before.
        settings: Before.
        space: With other bounds, or other values of parameters.
    """
    if settings.rule.start() is not None:
        raise UnsupportedError(
            f"The rule {type(settings.rule).__name__} has drawn conclusions from where points are in the range, so it "
            "cannot be changed. Make a new optimizer, and tell it what is known."
        )
    before, told = settings.space, state.observations

    def moved(points: Tensor) -> Tensor:
        return space.read(before.show(points)) if len(points) else space.no_points()

    pairs = torch.stack([moved(told.pairs[:, 0]), moved(told.pairs[:, 1])], dim=1)
    gradients = told.gradients
    if gradients is not None:
        gradients = gradients * _stretch(before, space)
    told = replace(told, points=moved(told.points), pairs=pairs, gradients=gradients)
    queued = None if state.queued is None else moved(state.queued)
    pending = moved(state.pending)
    return replace(state, observations=told, pending=pending, queued=queued, surrogate=None, asked=None, why=())


def add_pending(state: LoopState, points: Tensor) -> LoopState:
    """Add points whose outcomes are awaited."""
    return replace(state, pending=torch.cat([state.pending, points]))


def enqueue(state: LoopState, points: Tensor) -> LoopState:
    """Add points that are suggested before those of the rule."""
    return replace(state, queued=points if state.queued is None else torch.cat([state.queued, points]))


def take_queued(state: LoopState, q: int) -> LoopState:
    """The state in which up to some number of queued points are what was asked for last, and pending."""
    if state.queued is None or not len(state.queued):
        return replace(state, asked=state.pending[:0], why=())
    points = state.queued[:q]
    state = replace(state, queued=state.queued[q:], asked=points, why=("queued",) * len(points))
    return add_pending(state, points)


def cancel(state: LoopState, settings: LoopSettings, X: Any) -> LoopState:
    """Forget pending points; all of them if `X` is None."""
    if X is None:
        return replace(state, pending=state.pending[:0])
    return replace(state, pending=settings.space.still_pending(state.pending, settings.space.read(X)))


def current(state: LoopState, settings: LoopSettings) -> Observations:
    """Observations of the current run."""
    told = state.observations
    kept = settings.rule.in_run(state.memory, len(told.points))
    return told if bool(kept.all()) else told.rows(kept)


def after_design(state: LoopState, settings: LoopSettings) -> LoopState:
    """The state in which the rule knows that the initial design is complete, if it is."""
    if is_initial(state, settings):
        return state
    return _remembering(state, settings, settings.rule.designed(state.memory))


def _remembering(state: LoopState, settings: LoopSettings, memory: Any) -> LoopState:
    """With what the rule remembers now; a new run has a design and a model of its own."""
    rule = settings.rule
    if rule.run(memory) == rule.run(state.memory):
        return replace(state, memory=memory)
    return replace(state, memory=memory, num_designed=0, surrogate=None)


def num_initial(state: LoopState, settings: LoopSettings) -> int:
    """Number of outcomes of the current run before the model is asked."""
    return settings.rule.num_initial(state.memory, settings.num_initial)


def is_initial(state: LoopState, settings: LoopSettings) -> bool:
    """Tell whether the initial design goes on: until enough points are known or awaited, half of them known."""
    told = current(state, settings)
    if bool(told.is_informative.any()) and not bool(told.is_measured.any(0).all()):
        return True  # there is an outcome of which nothing is known
    num_known = 2 * len(told.pairs) if settings.is_preference else told.num_numbers
    num_expected, num_wanted = num_known + len(state.pending), num_initial(state, settings)
    return num_expected < num_wanted or 2 * num_known < num_wanted


def refitted(state: LoopState, settings: LoopSettings) -> LoopState:
    """The state with a model of all that was told: fitted if that is due, and otherwise updated in closed form."""
    data, surrogate = current(state, settings), state.surrogate
    if not len(data.pairs) and not bool(data.is_informative.any()):
        raise ValueRangeError(
            f"Nothing is known yet: of {len(data.points)} evaluations none has succeeded. "
            "Ask for points and tell their outcomes first."
        )
    for j, name in enumerate(settings.names):
        if not settings.is_preference and not bool(data.is_measured[:, j].any()):
            raise ValueRangeError(f"Nothing is known yet of {name!r}, which was not measured once. Tell it first.")
    try:
        return _relearned(state, settings, data, surrogate)
    except NumericalError as error:
        kernel = "Leave out the kernel that is your own, or " if settings.surrogate.kernel is not None else ""
        raise type(error)(
            f"No model could be learned of what was told: {error.finding}",
            advice=f"{kernel or 'First '}look for outcomes that are wrong, which correct and remove change. Outcomes "
            "that differ by many orders of magnitude, counts above all, can be told as logarithms to an optimizer "
            "whose likelihood is 'gaussian'.",
        ) from error


def _relearned(
    state: LoopState, settings: LoopSettings, data: Observations, surrogate: AbstractSurrogate | None
) -> LoopState:
    if isinstance(settings.rule, KnowledgePerCost):
        assert surrogate is None or isinstance(surrogate, SourceSurrogate)
        is_new = surrogate is None or surrogate.num_fitted != int(data.is_informative.sum())
        return replace(state, surrogate=fit_sources(data, settings, surrogate)) if is_new else state
    if is_refit_due(surrogate, data, settings):
        if settings.surrogate.is_exact:
            assert surrogate is None or isinstance(surrogate, ExactSurrogate)
            return replace(state, surrogate=fit_exact(data, settings, surrogate))
        assert surrogate is None or isinstance(surrogate, SparseSurrogate)
        return replace(state, surrogate=fit_sparse(data, settings, surrogate))
    if not isinstance(surrogate, SparseSurrogate):
        return state
    new = data.after(surrogate.num_points, surrogate.num_pairs)
    if not new.num_told:
        return state
    absorbed = absorb_observations(surrogate, settings, new, num_points=len(data.points), num_pairs=len(data.pairs))
    return replace(state, surrogate=absorbed)


def _check_new_members(state: LoopState, settings: LoopSettings, new: Observations) -> None:
    is_repeated = torch.isin(new.points, state.observations.points)
    if is_repeated.any():
        member = settings.space.show(new.points[is_repeated])[0]
        raise ValueRangeError(
            f"Each member is told once, but {int(member) if isinstance(member, Tensor) else member} was told before. "
            "Leave it out, or make several outcomes of one member into one before telling it."
        )
