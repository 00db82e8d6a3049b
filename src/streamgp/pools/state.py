"""What a pool learner knows, as a frozen value, and how it changes."""

from dataclasses import dataclass, field, replace
from typing import Any, final

import torch
from jaxtyping import Int
from torch import Tensor

from streamgp.acquisition.indices import read_indices
from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Binomial
from streamgp.pools.data import Told, nothing_told, read_told
from streamgp.pools.model import Surrogate, absorb_told, fit_surrogate, is_refit_due
from streamgp.pools.settings import Settings

__all__ = ["State", "available_members", "cancel", "observe", "refitted"]


@final
@dataclass(frozen=True, eq=False)
class State:
    """Everything that proposals depend on but the settings.

    Attributes:
        told: Outcomes so far.
        pending: Members that were asked for and not told yet.
        num_designed: How many members of the first design were given out.
        num_asks: How often members were proposed.
        surrogate: The model as of the last fit, with all outcomes that came since; None before the first.
    """

    told: Told = field(default_factory=nothing_told)
    pending: Int[Tensor, " p"] = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    num_designed: int = 0
    num_asks: int = 0
    surrogate: Surrogate | None = None

    @property
    def num_informative(self) -> int:
        """Number of outcomes that tell something."""
        return int(self.told.is_informative.sum())


def observe(state: State, settings: Settings, indices: Any, y: Any, *, total_count: Any, noise_variance: Any) -> State:
    """Add outcomes; see `read_told`."""
    new = read_told(settings, indices, y, total_count=total_count, noise_variance=noise_variance)
    is_repeated = torch.isin(new.members, state.told.members)
    if is_repeated.any():
        raise ValueRangeError(
            f"Each member is told once, but {int(new.members[is_repeated][0])} was told before. Leave it out, or make "
            "several outcomes of one member into one before telling it."
        )
    surrogate = state.surrogate
    if surrogate is not None:
        surrogate = absorb_told(surrogate, settings, new.informative)
    pending = state.pending[~torch.isin(state.pending, new.members)]
    return replace(state, told=state.told.join(new), pending=pending, surrogate=surrogate)


def cancel(state: State, settings: Settings, indices: Any) -> State:
    """Forget pending members; all of them if `indices` is None."""
    if indices is None:
        return replace(state, pending=state.pending[:0])
    members = read_indices(indices, len(settings.inputs), "indices")
    return replace(state, pending=state.pending[~torch.isin(state.pending, members)])


def available_members(state: State, settings: Settings) -> Int[Tensor, " a"]:
    """Members that may be proposed: neither told nor pending, and with at least one trial."""
    is_free = torch.ones(len(settings.inputs), dtype=torch.bool)
    is_free[state.told.members] = False
    is_free[state.pending] = False
    if isinstance(settings.likelihood, Binomial):
        is_free &= settings.likelihood.total_count.cpu().expand(len(is_free)) > 0
    return is_free.nonzero().squeeze(-1)


def refitted(state: State, settings: Settings) -> State:
    """The state with a model that was fitted when that was last due."""
    if not is_refit_due(state.surrogate, state.num_informative, settings):
        return state
    return replace(state, surrogate=fit_surrogate(state.told.informative, settings, state.surrogate))
