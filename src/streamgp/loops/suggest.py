"""One suggestion: from the initial design, or from the model and a rule."""

import math
import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from streamgp.acquisition import AbstractSpace, Context
from streamgp.acquisition.abstract_rule import Design
from streamgp.acquisition.feasible_objective import FeasibleObjective, Limits
from streamgp.acquisition.pool import Pool
from streamgp.conditioning import SparseGP
from streamgp.errors import StreamGPWarning
from streamgp.loops.neighbors import untried_neighbor
from streamgp.loops.noise_free import NOISE_MODE
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
# With several objectives, one of so many points is chosen far from all others, the farthest of so many.
_LONELY_EVERY, _NUM_LONELY = 8, 256
# Among discrete parameters, one of so many points is a neighbor of the best that was not tried.
_NEIGHBOR_EVERY = 3


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
    run = rule.run(state.memory)
    seed = derived_seed(settings.seed, state.num_asks)
    told = state.observations
    space = settings.space.without(torch.cat([told.points, state.pending]))
    num_designed = state.num_designed
    if not rule.needs_model:
        points = space.scatter(q, num_before=num_designed, seed=settings.seed, ask=state.num_asks)
        num_designed += q
    elif is_initial(state, settings):
        first = settings.seed if run == 0 else derived_seed(settings.seed, _DESIGN, run)
        values = told.y[:, 0] if settings.objectives[0].maximize else -told.y[:, 0]
        design = Design(space, num_initial(state, settings), num_designed, first, told.points, values)
        memory, points = rule.design(state.memory, q, design)
        state, num_designed = replace(state, memory=memory), num_designed + len(points)
    elif (unseen := _more_design(state, settings, space, q)) is not None:
        points, num_designed = unseen, num_designed + q
    else:
        if isinstance(space, PoolSpace):
            space.check_left(q)
        state = refitted(state, settings)
        if isinstance(space, ParameterSpace) and not _is_noise_seen(state, settings):
            space = space.without_taken(torch.cat([told.points, state.pending]))
        context = make_context(state, replace(settings, space=space))
        # What a model that is wrong would never ask for; rules choose the others.
        points = _lonely(state, settings, space, q, seed=derived_seed(seed, 2))
        points = _next_door(state, settings, context, q) if not len(points) else points
        if len(points) < q:
            points = torch.cat([rule.propose(context, q - len(points), seed=seed), points])
    if not rule.may_repeat:
        # Where there is noise, to ask for a point again can be worth as much as another one.
        is_noisy = _is_noisy(state, settings)
        taken = told.failures if is_noisy else torch.cat([state.pending, told.failures])
        if isinstance(space, ParameterSpace) and space.is_listed and not _is_noise_seen(state, settings):
            taken = torch.cat([told.points, state.pending])
            if state.surrogate is not None and not is_noisy and not space.num_left(taken):
                _warn_of_exhausted()
            is_noisy = False
        points = space.separate(points, taken, is_noisy=is_noisy, seed=derived_seed(seed, 1))
    if (doubted := _doubted(state, settings)) is not None:
        points = torch.cat([doubted, points[1:]])
    state = replace(state, num_designed=num_designed, num_asks=state.num_asks + 1)
    return add_pending(state, points), points


def _is_noisy(state: LoopState, settings: LoopSettings) -> bool:
    """Whether the model sees noise in an objective."""
    surrogate, outputs = state.surrogate, range(len(settings.objectives))
    return surrogate is not None and not all(surrogate.is_noise_free(j) for j in outputs)


def _is_noise_seen(state: LoopState, settings: LoopSettings) -> bool:
    """The same, where that is more than what is expected of outcomes that are few."""
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
    """More points of the initial design, where all outcomes are alike; None where a rule is to choose.

    Of outcomes that are alike a model learns that nothing matters, and would go from corner to corner, where it is
    least sure. A finite space from which the design would repeat a point is left to the rule.
    """
    data = current(state, settings)
    known = data.rows(data.is_informative)
    rule_remembers = settings.rule.start() is not None
    if rule_remembers or settings.is_preference or isinstance(space, PoolSpace) or not known.are_alike:
        return None
    points = space.design(q, num_initial=settings.num_initial, num_before=state.num_designed, seed=settings.seed)
    taken = torch.cat([data.points, state.pending])
    is_repeated = bool((points.unsqueeze(1) == taken).all(-1).any())
    return None if is_repeated else points


def _doubted(state: LoopState, settings: LoopSettings) -> Tensor | None:
    """The point of the best outcome, once, where the model sees noise or ripples; None otherwise.

    A function that is rugged looks like noise to a model, which then searches and recommends where it is not; and noise
    looks like ripples. To evaluate one point again tells which it is: outcomes that are repeated to the last digit have
    no noise.
    """
    is_fixed = isinstance(settings.space, ParameterSpace) and bool(settings.space.fixed)
    if is_fixed or is_initial(state, settings) or settings.is_preference or settings.rule.start() is not None:
        return None
    surrogate, data = state.surrogate, current(state, settings)
    known = data.rows(data.is_informative)
    is_real = settings.outcomes[0].has_unknown_noise and len(settings.objectives) == 1
    if surrogate is None or not is_real or isinstance(settings.space, PoolSpace) or len(known.y) < _LEAST_KNOWN:
        return None
    is_asked = bool((state.pending.unsqueeze(1) == known.points).all(-1).any())
    if is_asked or known.repeats is not None:
        return None
    feasible = known.rows(_are_kept(known, settings))
    # What is next to nothing in an objective decides which points keep a constraint.
    is_bound_doubted = len(feasible.y) > 0 and any(
        one.outcome.has_unknown_noise and not surrogate.has_neither_noise_nor_ripples(j)
        for j, one in enumerate(settings.constraints, 1)
    )
    if surrogate.rough_share(0) < NOISE_MODE and not is_bound_doubted:
        return None
    among = feasible if len(feasible.y) else known
    best = among.y[:, 0].argmax() if settings.objectives[0].maximize else among.y[:, 0].argmin()
    return among.points[best : best + 1]


def _are_kept(known: Observations, settings: LoopSettings) -> Tensor:
    """Which outcomes keep all constraints, by what was observed."""
    kept = torch.ones(len(known.y), dtype=torch.bool)
    for j, one in enumerate(settings.constraints, len(settings.objectives)):
        kept = kept & one.is_kept(known.y[:, j])
    return kept


def _next_door(state: LoopState, settings: LoopSettings, context: Context, q: int) -> Tensor:
    """Now and then, an untried neighbor of the best point in a discrete parameter, or none."""
    space, taken = settings.space, torch.cat([current(state, settings).points, state.pending])
    num_chosen = max(len(taken) - settings.num_initial, 0)
    is_whole = settings.rule.start() is None and not settings.is_preference and len(settings.objectives) == 1
    if not is_whole or not isinstance(space, ParameterSpace) or num_chosen % _NEIGHBOR_EVERY + q < _NEIGHBOR_EVERY:
        return taken[:0]
    found = untried_neighbor(context, space, taken)
    return taken[:0] if found is None else found


def _lonely(state: LoopState, settings: LoopSettings, space: AbstractSpace, q: int, *, seed: int) -> Tensor:
    """Now and then, the point of a design farthest from all others, where there are several objectives, or none.

    There is always more to gain along a front that is known, so that a model that is wrong about the rest of the space
    would not be asked about it again.
    """
    taken = torch.cat([current(state, settings).points, state.pending])
    num_chosen = max(len(taken) - settings.num_initial, 0)
    is_whole = settings.rule.start() is None and not isinstance(space, PoolSpace)
    if len(settings.objectives) == 1 or not is_whole or num_chosen % _LONELY_EVERY + q < _LONELY_EVERY:
        return taken[:0]
    drawn = space.design(_NUM_LONELY, num_initial=0, num_before=0, seed=seed)
    distance = torch.cdist(space.inputs(drawn), space.inputs(taken)).amin(-1)
    return drawn[distance.argmax()].unsqueeze(0) if bool(distance.any()) else taken[:0]


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
    if surrogate.knows_success and settings.rule.knows_constraints:
        limits.append(_success_limits(data))
    elif surrogate.knows_success:
        assert isinstance(model, OnlineGP)
        model = model.subset_output(list(range(len(surrogate.units))))
    if not (surrogate.knows_success and settings.rule.knows_constraints):
        pending = torch.cat([pending, space.inputs(data.failures)])
    baseline, observed = _known(data, settings)
    objective = FeasibleObjective(tuple(one.weight for one in settings.objectives), tuple(limits))
    if limits:
        posterior: Any = model.posterior(baseline)
        worst = objective.score(posterior.mean).min()
        # One unit below the worst mean, so that to be feasible is worth something everywhere.
        objective = replace(objective, cost=1.0 - float(worst))
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
    )


def _known(data: Observations, settings: LoopSettings) -> tuple[Tensor, Tensor]:
    """Inputs of which something is known, and the objective there, to be maximized; NaN where points were compared."""
    known = data.rows(data.is_informative)
    y = known.y[:, 0] if settings.objectives[0].maximize else -known.y[:, 0]
    compared = torch.unique(data.pairs.flatten(0, 1), dim=0)
    baseline = settings.space.inputs(torch.cat([known.points, compared]))
    return baseline, torch.cat([y, y.new_full((len(compared),), torch.nan)])


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
