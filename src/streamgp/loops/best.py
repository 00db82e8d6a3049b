"""The best point, as far as is known."""

import math
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition import Context
from streamgp.acquisition.feasible_objective import FeasibleMean
from streamgp.loops.prediction import predict_objective
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState, current
from streamgp.loops.suggest import make_context
from streamgp.seeds import derived_seed

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

    X: Any
    mean: float
    std: float
    probability_feasible: float
    observed: float | None


def find_best(state: LoopState, settings: LoopSettings, *, anywhere: bool) -> Best:
    """Find the point of best posterior mean that likely keeps the constraints; the likeliest to do so, if none does.

    Of earlier runs, which the model does not know, the best outcome is compared with that mean.

    Args:
        state: With a model, if the current run has data.
        settings: Of the loop.
        anywhere: Whether it may be a point that was never evaluated.
    """
    before = _best_of_earlier_runs(state, settings)
    if before is not None and not bool(current(state, settings).is_informative.any()):
        return before
    best = _best_of_run(state, settings, anywhere=anywhere)
    if before is None:
        return best
    is_better = before.mean > best.mean if settings.objectives[0].maximize else before.mean < best.mean
    return before if is_better else best


def _best_of_run(state: LoopState, settings: LoopSettings, *, anywhere: bool) -> Best:
    context, data, space = make_context(state, settings), current(state, settings), settings.space
    known = data.rows(data.is_informative)
    points = torch.cat([known.points, torch.unique(data.pairs.flatten(0, 1), dim=0)])
    if anywhere:
        points = torch.cat([points, _maximizer(context, settings)])
    with torch.no_grad():
        posterior: Any = context.model.posterior(space.inputs(points))
        # Whether an evaluation would fail, the last column if there is one, does not matter to a point that is known.
        chance = context.objective.feasibility(posterior.mean, posterior.variance)[:, : len(settings.constraints)]
        index = int(most_wanted(context.objective.score(posterior.mean), chance))
    predicted = predict_objective(state, settings, space.inputs(points[index : index + 1]))
    is_here = points[index] == known.points
    is_here = is_here.all(-1) if is_here.dim() == 2 else is_here
    return Best(
        X=space.show(points[index : index + 1])[0],
        mean=float(predicted.mean[0]),
        std=float(predicted.std[0]),
        probability_feasible=float(chance[index].prod()),
        observed=float(known.y[is_here, 0].mean()) if is_here.any() else None,
    )


def _best_of_earlier_runs(state: LoopState, settings: LoopSettings) -> Best | None:
    """The best outcome of runs that are over, whose uncertainty is not known any more; None if there are none."""
    told = state.observations
    told = told.rows(~settings.rule.in_run(state.memory, len(told.points)) & told.is_informative)
    if not len(told.points):
        return None
    y = told.y[:, 0]
    index = int(y.argmax() if settings.objectives[0].maximize else y.argmin())
    X = settings.space.show(told.points[index : index + 1])[0]
    return Best(X, mean=float(y[index]), std=math.nan, probability_feasible=1.0, observed=float(y[index]))


def most_wanted(score: Float[Tensor, " n"], feasibility: Float[Tensor, "n c"]) -> Int[Tensor, ""]:
    """Index of the best point among those that likely keep each limit; of the likeliest one, if none does."""
    is_good = (feasibility >= 0.5).all(-1)
    if is_good.any():
        return score.masked_fill(~is_good, -torch.inf).argmax()
    return feasibility.log().sum(-1).argmax()


def _maximizer(context: Context, settings: LoopSettings) -> Tensor:
    function = FeasibleMean(context.model, context.objective)
    return context.space.maximize(function, 1, settings.search, seed=derived_seed(settings.seed, 1))
