"""All that a suggestion is made from."""

import math
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import ValueRangeError
from streamgp.models import OnlineGP
from streamgp.optimizers.goal import Goal, Limits
from streamgp.optimizers.settings import CONSTRAINED, Settings
from streamgp.optimizers.state import State
from streamgp.optimizers.surrogate import Data, fit_surrogate, is_refit_due

__all__ = ["Decision", "refitted"]

_NUM_CENTRES = 5
# With a half, more evaluations beyond the edge of a region that fails were tried, and nothing was found sooner.
_SUCCESS_SHARE = 0.8


@final
@dataclass(frozen=True, eq=False)
class Decision:
    """A model, what is wanted of it, and the points that matter; in the unit cube and the units of the model.

    Attributes:
        model: Of the objective and of all that is limited.
        goal: What is wanted.
        baseline: Points of which something is known.
        pending: Points whose outcome is awaited.
        is_comparison: Whether points are compared with each other, instead of observed.
    """

    model: OnlineGP
    goal: Goal
    baseline: Float[Tensor, "n d"]
    pending: Float[Tensor, "p d"]
    is_comparison: bool = False

    @classmethod
    def make(cls, state: State, settings: Settings) -> "Decision":
        """Lay out a state with a model for acquisition functions.

        Where evaluations failed, success is one more output with a limit, if the acquisition function knows of limits;
        if not, failed points are treated as pending, from which nothing is to be learned any more.
        """
        surrogate, data, pending = state.surrogate, state.data, state.pending
        assert surrogate is not None
        model = surrogate.model()
        limits = [one.limits(units) for one, units in zip(settings.constraints, surrogate.units[1:], strict=True)]
        if surrogate.knows_success and settings.acquisition in CONSTRAINED:
            limits.append(_success_limits(data))
        else:
            model = model.subset_output(list(range(len(surrogate.units))))
            pending = torch.cat([pending, data.failures])
        goal = Goal(settings.weight, tuple(limits))
        worst = goal.objective(model.posterior(data.baseline).mean).min()
        # One unit below the worst mean, so that to be feasible is worth something everywhere.
        goal = replace(goal, cost=1.0 - float(worst))
        return cls(model, goal, data.baseline, pending, settings.is_preference)

    @property
    def pending_or_none(self) -> Tensor | None:
        """Pending points as BoTorch has them."""
        return self.pending if len(self.pending) else None

    @property
    def num_dims(self) -> int:
        """Number of dimensions."""
        return self.baseline.shape[-1]

    def best_known(self) -> Float[Tensor, ""]:
        """The largest mean of the objective at known points that are likely feasible; the least if none is."""
        posterior = self.model.posterior(self.baseline)
        score = self.goal.objective(posterior.mean)
        is_good = (self.goal.feasibility(posterior.mean, posterior.variance) >= 0.5).all(-1)
        return (score[is_good].max() if is_good.any() else score.min()).detach()

    def centres(self) -> Float[Tensor, "c d"]:
        """The known points of largest expected value."""
        value = self.goal.value(self.model.posterior(self.baseline)).detach()
        return self.baseline[value.topk(min(_NUM_CENTRES, len(value))).indices]


def refitted(state: State, settings: Settings) -> State:
    """The state with a model that was fitted when that was last due."""
    data = state.data
    if not len(data.baseline):
        raise ValueRangeError(
            f"Nothing is known yet: of {state.num_told} evaluations none has succeeded. "
            "Ask for points and tell their outcomes first."
        )
    if not is_refit_due(state.surrogate, data, settings):
        return state
    return replace(state, surrogate=fit_surrogate(data, settings, state.surrogate))


def _success_limits(data: Data) -> Limits:
    """A point is avoided where success is less likely than a share of what it was on average."""
    num_good, num_bad = len(data.X), len(data.failures)
    rate = _SUCCESS_SHARE * (num_good + 1.0) / (num_good + num_bad + 2.0)
    return math.log(rate) - math.log1p(-rate), None
