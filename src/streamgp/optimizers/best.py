"""The best point, as far as is known."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.optimizers.decision import Decision, refitted
from streamgp.optimizers.design import derived_seed
from streamgp.optimizers.goal import FeasibleMean
from streamgp.optimizers.maximize import maximize
from streamgp.optimizers.settings import Settings
from streamgp.optimizers.state import State

__all__ = ["Best", "find_best", "most_wanted"]


@final
@dataclass(frozen=True, eq=False)
class Best:
    """The most promising point; in the user's units.

    Attributes:
        X: The point.
        mean: Expected outcome there: a value, a rate, a probability; a utility for comparisons, whose zero is
            arbitrary.
        std: Standard deviation of what is not known of it, without the noise of an observation.
        probability_feasible: Probability that all constraints hold there; 1 if there are none.
        observed: Mean of the outcomes observed at that point; None if there are none.
    """

    X: Float[Tensor, " d"]
    mean: float
    std: float
    probability_feasible: float
    observed: float | None


def find_best(state: State, settings: Settings, *, anywhere: bool) -> Best:
    """Find the point of best posterior mean that likely keeps the constraints; the likeliest to do so, if none does.

    Args:
        state: What is known.
        settings: Of the optimizer.
        anywhere: Whether it may be a point that was never evaluated.
    """
    state = refitted(state, settings)
    decision, data = Decision.make(state, settings), state.data
    points = decision.baseline
    if anywhere:
        points = torch.cat([points, _maximizer(decision, settings)])
    with torch.no_grad():
        posterior = decision.model.posterior(points)
        # Whether an evaluation would fail, the last column if there is one, does not matter to a point that is known.
        chance = decision.goal.feasibility(posterior.mean, posterior.variance)[:, : len(settings.constraints)]
        index = int(most_wanted(decision.goal.objective(posterior.mean), chance))
    mean, std = _response(state, settings, points[index])
    is_here = (points[index] == data.X).all(-1)
    return Best(
        X=settings.box.to_user(points[index]),
        mean=mean,
        std=std,
        probability_feasible=float(chance[index].prod()),
        observed=float(data.y[is_here, 0].mean()) if is_here.any() else None,
    )


def most_wanted(score: Float[Tensor, " n"], feasibility: Float[Tensor, "n c"]) -> Int[Tensor, ""]:
    """Index of the best point among those that likely keep each limit; of the likeliest one, if none does."""
    is_good = (feasibility >= 0.5).all(-1)
    if is_good.any():
        return score.masked_fill(~is_good, -torch.inf).argmax()
    return feasibility.log().sum(-1).argmax()


def _maximizer(decision: Decision, settings: Settings) -> Float[Tensor, "1 d"]:
    function = FeasibleMean(decision.model, decision.goal)
    return maximize(function, 1, settings.search, num_dims=decision.num_dims, seed=derived_seed(settings.seed, 1))


@torch.no_grad()
def _response(state: State, settings: Settings, point: Float[Tensor, " d"]) -> tuple[float, float]:
    """Mean and standard deviation of the expected outcome at a point, in the user's units."""
    assert state.surrogate is not None
    model, units = state.surrogate.model().subset_output([0]), state.surrogate.units[0]
    if not settings.objective.is_real:
        model = model.on_scale("response")
    posterior = model.posterior(point.unsqueeze(0))
    mean, variance = posterior.mean.reshape(()), posterior.variance.reshape(())
    return float(units.outside(mean)), abs(units.scale) * float(variance.clamp_min(0.0).sqrt())
