"""One proposal: from the first design, at random, or by an acquisition function."""

from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Int
from torch import Tensor

from streamgp.acquisition.exceedance import score_exceedance
from streamgp.acquisition.hotspot_entropy import score_hotspot_entropy
from streamgp.acquisition.integrated_variance import score_integrated_variance
from streamgp.acquisition.latent_variance import score_latent_variance
from streamgp.acquisition.pool import Pool, Score, choose_greedily
from streamgp.acquisition.pool_belief import PoolBelief
from streamgp.acquisition.response_variance import score_response_variance
from streamgp.errors import ValueRangeError
from streamgp.pools.design import first_members, seeded
from streamgp.pools.settings import Settings
from streamgp.pools.state import State, available_members, refitted

__all__ = ["propose"]

_RANDOM = 3


def propose(state: State, settings: Settings, q: int) -> tuple[State, Int[Tensor, " q"]]:
    """Choose members that were neither told nor are pending.

    Args:
        state: What is known.
        settings: Of the learner.
        q: How many.

    Returns:
        The state after the proposal, in which they are pending, and the members.
    """
    available = available_members(state, settings)
    if len(available) < q:
        raise ValueRangeError(
            f"{q} members were asked for, but {len(available)} of {len(settings.inputs)} are left that were neither "
            f"told nor are pending. Ask for at most {len(available)}, or tell or cancel pending ones."
        )
    num_designed = state.num_designed
    if settings.acquisition == "random":
        generator = seeded(settings.seed, _RANDOM, state.num_asks)
        members = available[torch.randperm(len(available), generator=generator)[:q]]
    elif state.num_informative < settings.num_initial:
        members = first_members(
            settings.scaled,
            available,
            q,
            num_initial=settings.num_initial,
            num_before=num_designed,
            seed=settings.seed,
        )
        num_designed += q
    else:
        state = refitted(state, settings)
        members = choose_greedily(_score(settings), _pool(state, settings, available), available, q)
    pending = torch.cat([state.pending, members])
    return replace(state, pending=pending, num_designed=num_designed, num_asks=state.num_asks + 1), members


def _pool(state: State, settings: Settings, available: Int[Tensor, " a"]) -> Pool:
    """The pool as the model sees it, with pending members awaited."""
    assert state.surrogate is not None
    targets = settings.given_targets
    if targets is None:
        targets = settings.default_targets
        targets = targets[~torch.isin(targets, state.told.members)]
        targets = targets if len(targets) else available
    pool = Pool(
        PoolBelief.of(state.surrogate.result.gp, settings.scaled),
        state.surrogate.pool_likelihood(settings),
        targets,
        settings.weights[targets],
    )
    for member in state.pending.tolist():
        pool = pool.awaiting(member)
    return pool


def _score(settings: Settings) -> Score:
    if settings.acquisition == "hotspot_entropy":
        return partial(score_hotspot_entropy, rule=settings.hotspot_rule)
    if settings.acquisition == "exceedance":
        assert settings.threshold is not None
        return partial(score_exceedance, threshold=settings.threshold)
    scores: dict[str, Score] = {
        "integrated_variance": score_integrated_variance,
        "response_variance": partial(score_response_variance, threshold=settings.threshold),
        "variance": score_latent_variance,
    }
    return scores[settings.acquisition]
