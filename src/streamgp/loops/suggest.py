"""One suggestion: from the initial design, or from the model and a rule."""

import math
import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from streamgp.acquisition import AbstractSpace, Context
from streamgp.acquisition.abstract_rule import Choice, Design
from streamgp.acquisition.feasible_objective import FeasibleObjective, Limits
from streamgp.acquisition.pool import Pool
from streamgp.conditioning import SparseGP
from streamgp.errors import StreamGPWarning
from streamgp.loops.model_selection import NOISE_MODE
from streamgp.loops.observations import Observations
from streamgp.loops.parameter_space import ParameterSpace
from streamgp.loops.pool_space import PoolSpace
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState, add_pending, after_design, current, is_initial, num_initial, refitted
from streamgp.loops.surrogate import SparseSurrogate
from streamgp.models import OnlineGP
from streamgp.seeds import derived_seed

__all__ = ["make_context", "suggest"]

# With a half, more evaluations beyond the edge of a region that fails were tried, and nothing was found sooner.
_SUCCESS_SHARE = 0.8
# Salt of the seeds of later designs.
_DESIGN = 1
# With fewer outcomes a model sees what its prior expects.
_LEAST_KNOWN = 15
_DESIGNED = "initial design"


def suggest(state: LoopState, settings: LoopSettings, q: int) -> tuple[LoopState, Tensor]:
    """Choose points to evaluate next.

    Args:
        state: What is known.
        settings: Of the loop.
        q: Number of points.

    Returns:
        The state in which they are pending, and the points.
    """
    state, rule = after_design(state, settings), settings.rule
    leaf, seed = rule.innermost, derived_seed(settings.seed, state.num_asks)
    space = settings.space.without(torch.cat([state.observations.points, state.pending]))
    num_designed = state.num_designed
    if not leaf.needs_model:
        points = space.scatter(q, num_before=num_designed, seed=settings.seed, ask=state.num_asks)
        choice, num_designed = Choice(points, ("at random",) * q), num_designed + q
    elif is_initial(state, settings):
        memory, points = rule.design(state.memory, q, _design(state, settings, space))
        choice = Choice(points, (_DESIGNED,) * len(points))
        state, num_designed = replace(state, memory=memory), num_designed + len(points)
    elif (more := _more_design(state, settings, space, q)) is not None:
        choice, num_designed = (
            Choice(more, ("initial design goes on, as all outcomes are alike",) * q),
            num_designed + q,
        )
    else:
        state, choice = _choose(state, settings, space, q, seed=seed)
    points = choice.points
    if not leaf.may_repeat:
        kept, rest = points[: choice.num_repeated], points[choice.num_repeated :]
        points = torch.cat([kept, _separated(state, settings, space, rest, seed=derived_seed(seed, 1))])
    state = replace(state, num_designed=num_designed, num_asks=state.num_asks + 1, asked=points, why=choice.why)
    return add_pending(state, points), points


def _design(state: LoopState, settings: LoopSettings, space: AbstractSpace) -> Design:
    """Lay out the initial design of the current run."""
    run, told = settings.rule.run(state.memory), state.observations
    seed = settings.seed if run == 0 else derived_seed(settings.seed, _DESIGN, run)
    values = told.y[:, 0] if settings.objectives[0].maximize else -told.y[:, 0]
    return Design(space, num_initial(state, settings), state.num_designed, seed, told.points, values)


def _choose(
    state: LoopState, settings: LoopSettings, space: AbstractSpace, q: int, *, seed: int
) -> tuple[LoopState, Choice]:
    """Fit the model if that is due, and ask the rule."""
    if isinstance(space, PoolSpace):
        space.check_left(q)
    state = refitted(state, settings)
    if isinstance(space, ParameterSpace) and not _is_noise_seen(state, settings):
        space = space.without_taken(torch.cat([state.observations.points, state.pending]))
    return state, settings.rule.choose(make_context(state, replace(settings, space=space)), q, seed=seed)


def _separated(state: LoopState, settings: LoopSettings, space: AbstractSpace, points: Tensor, *, seed: int) -> Tensor:
    """Replace points that repeat others; where there is noise, to ask again can be worth as much as another point."""
    told, is_noisy = state.observations, _is_noisy(state, settings)
    taken = told.failures if is_noisy else torch.cat([state.pending, told.failures])
    if isinstance(space, ParameterSpace) and space.is_listed and not _is_noise_seen(state, settings):
        taken = torch.cat([told.points, state.pending])
        if state.surrogate is not None and not is_noisy and not space.num_left(taken):
            _warn_of_exhausted()
        is_noisy = False
    return space.separate(points, taken, is_noisy=is_noisy, seed=seed)


def _is_noisy(state: LoopState, settings: LoopSettings) -> bool:
    """Tell whether the model sees noise in an objective."""
    surrogate, outputs = state.surrogate, range(len(settings.objectives))
    return surrogate is not None and not all(surrogate.is_noise_free(j) for j in outputs)


def _is_noise_seen(state: LoopState, settings: LoopSettings) -> bool:
    """Tell whether the model sees noise, and more than is expected of outcomes that are few."""
    data = current(state, settings)
    known = data.rows(data.is_informative)
    is_unknown = all(one.outcome.has_unknown_noise for one in settings.objectives)
    is_expected = is_unknown and known.repeats is None and len(known.y) < _LEAST_KNOWN
    return not is_expected and _is_noisy(state, settings)


def _warn_of_exhausted() -> None:
    """Say that all points of a finite space are known."""
    warnings.warn(
        "All points that are possible here were told or are pending, and their outcomes show no noise, so that "
        "there is nothing left to ask for: what is suggested now repeats one of them. See best().",
        StreamGPWarning,
        stacklevel=4,
    )


def _more_design(state: LoopState, settings: LoopSettings, space: AbstractSpace, q: int) -> Tensor | None:
    """More points of the design, if the rule wants them; None where it would repeat a point of a finite space."""
    data = current(state, settings)
    known = data.rows(data.is_informative)
    if not settings.rule.extends_design(are_alike=known.are_alike):
        return None
    points = space.design(q, num_initial=settings.num_initial, num_before=state.num_designed, seed=settings.seed)
    taken = torch.cat([data.points, state.pending])
    is_repeated = bool((points.unsqueeze(1) == taken).all(-1).any())
    return None if is_repeated else points


def _doubted(state: LoopState, settings: LoopSettings) -> Tensor | None:
    """The point of the best outcome where the model sees noise or ripples, and no point tells which; None otherwise."""
    surrogate, data = state.surrogate, current(state, settings)
    known = data.rows(data.is_measured.all(-1))
    is_fixed = isinstance(settings.space, ParameterSpace) and bool(settings.space.fixed)
    is_real = settings.outcomes[0].has_unknown_noise and len(settings.objectives) == 1
    if surrogate is None or is_fixed or not is_real or isinstance(settings.space, PoolSpace):
        return None
    is_asked = bool((state.pending.unsqueeze(1) == known.points).all(-1).any())
    if is_asked or known.repeats is not None or len(known.y) < _LEAST_KNOWN:
        return None
    feasible = known.rows(_are_kept(known, settings))
    # What is next to nothing in an objective decides which points keep a constraint.
    is_bound_doubted = len(feasible.y) > 0 and any(
        one.outcome.has_unknown_noise and not surrogate.is_deterministic(j)
        for j, one in enumerate(settings.constraints, 1)
    )
    if surrogate.rough_share(0) < NOISE_MODE and not is_bound_doubted:
        return None
    among = feasible if len(feasible.y) else known
    best = among.y[:, 0].argmax() if settings.objectives[0].maximize else among.y[:, 0].argmin()
    return among.points[best : best + 1]


def _are_kept(known: Observations, settings: LoopSettings) -> Tensor:
    """Mark outcomes that keep all constraints, by what was observed."""
    kept = torch.ones(len(known.y), dtype=torch.bool)
    for j, one in enumerate(settings.constraints, len(settings.objectives)):
        kept = kept & one.is_kept(known.y[:, j])
    return kept


def make_context(state: LoopState, settings: LoopSettings) -> Context:
    """Lay out a state with a model for rules.

    Where evaluations failed, success is one more output with a limit, if the rule knows of limits; if not, failed
    points are treated as pending, from which nothing is to be learned any more.
    """
    surrogate, data, space = state.surrogate, current(state, settings), settings.space
    assert surrogate is not None
    model, pending = surrogate.model(), space.inputs(state.pending)
    limits = [
        one.limits(units)
        for one, units in zip(settings.constraints, surrogate.units[len(settings.objectives) :], strict=True)
    ]
    if surrogate.knows_success and settings.rule.innermost.knows_constraints:
        limits.append(_success_limits(data))
    elif surrogate.knows_success:
        assert isinstance(model, OnlineGP)
        model = model.subset_output(list(range(len(surrogate.units))))
    if not (surrogate.knows_success and settings.rule.innermost.knows_constraints):
        pending = torch.cat([pending, space.inputs(data.failures)])
    baseline, observed = _known(data, settings)
    floors = [one.floor(units) for one, units in zip(settings.objectives, surrogate.units, strict=False)]
    weights = tuple(one.weight for one in settings.objectives)
    objective = FeasibleObjective(weights, tuple(limits), floors=tuple(floors))
    if limits:
        posterior: Any = model.posterior(baseline)
        worst = objective.score(posterior.mean).min()
        # One unit below the worst mean, so that to be feasible is worth something everywhere.
        objective = replace(objective, cost=1.0 - float(worst))
    taken = torch.cat([data.points, state.pending])
    return Context(
        model=model,
        objective=objective,
        space=space,
        baseline=baseline,
        observed=observed,
        pending=pending,
        search=settings.search,
        is_comparison=settings.is_preference,
        pool=_pool(state, settings),
        memory=state.memory,
        taken=taken,
        num_chosen=max(len(taken) - settings.num_initial, 0),
        doubted=_doubted(state, settings),
    )


def _known(data: Observations, settings: LoopSettings) -> tuple[Tensor, Tensor]:
    """Inputs of which something is known, and the objective there, to be maximized; NaN where points were compared."""
    known = data.rows(data.is_informative)
    y = torch.where(known.is_measured[:, 0], known.y[:, 0], torch.nan)
    y = y if settings.objectives[0].maximize else -y
    compared = torch.unique(data.pairs.flatten(0, 1), dim=0)
    points, observed = torch.cat([known.points, compared]), torch.cat([y, y.new_full((len(compared),), torch.nan)])
    projected = settings.space.project(points)
    if projected is not points:
        # What is to be improved on is what points that can be set are expected to be, within the context and the range.
        points, index = torch.unique(projected, dim=0, return_inverse=True)
        observed = y.new_full((len(points),), -torch.inf).scatter_reduce(0, index, observed, "amax")
    return settings.space.inputs(points), observed


def _pool(state: LoopState, settings: LoopSettings) -> Pool | None:
    if not isinstance(settings.space, PoolSpace):
        return None
    surrogate = state.surrogate
    assert isinstance(surrogate, SparseSurrogate)
    result, outcome = surrogate.results[0], settings.outcomes[0]
    likelihood = outcome.likelihood.with_learnable(result.likelihood.learnable())
    assert isinstance(result.gp, SparseGP)
    return settings.space.view(result.gp, likelihood, told=state.observations.points, pending=state.pending)


def _success_limits(data: Observations) -> Limits:
    """A point is avoided where success is less likely than a share of what it was on average."""
    num_good = int(data.is_success.sum())
    rate = _SUCCESS_SHARE * (num_good + 1.0) / (len(data.points) + 2.0)
    return math.log(rate) - math.log1p(-rate), None
