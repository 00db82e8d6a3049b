"""The best point, as far as is known."""

import math
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from streamgp.acquisition import Context
from streamgp.acquisition.feasible_objective import FeasibleMean
from streamgp.display import html_rows, shown_point, with_uncertainty
from streamgp.loops.model_selection import NOISE_MODE
from streamgp.loops.observations import Observations
from streamgp.loops.prediction import predict_objective
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState, current
from streamgp.loops.suggest import make_context
from streamgp.loops.surrogate import AbstractSurrogate
from streamgp.seeds import derived_seed

__all__ = ["Best", "are_within", "best_evaluated", "find_best", "is_taken_at_its_word", "most_wanted"]


# How sure it must be that a point keeps all constraints for it to be called feasible.
_SURE = 0.9
# Points that are this close to one that can be set, in the unit cube, count as such: sums of mixtures are often missed.
_NEARLY = 0.02


@final
@dataclass(frozen=True, eq=False, repr=False)
class Best:
    """The best point, in the user's units: the best of those that were evaluated, with what the model recommends.

    Attributes:
        X: The point.
        mean: Expected outcome there: a value, a rate, a probability; a utility for comparisons, whose zero is
            arbitrary.
        std: Standard deviation of what is not known of it, without the noise of an observation; NaN for a point of an
            earlier run of a trust region, which the model does not know.
        probability_feasible: Probability that all constraints hold there; 1 if there are none.
        observed: Mean of the outcomes observed at that point; None if there are none.
        elsewhere: The point of the best mean anywhere, evaluated or not; None where this is that point.
        name: Of the objective.
    """

    X: Any
    mean: float
    std: float
    probability_feasible: float
    observed: float | None
    elsewhere: "Best | None" = None
    name: str = "objective"

    def to_rows(self) -> list[dict[str, Any]]:
        """The best evaluated point and the recommended one as dictionaries, with outcomes by name."""
        shown = [("best", self)] if self.elsewhere is None else [("best", self), ("recommended", self.elsewhere)]
        return [
            {
                "which": which,
                "point": one.X.tolist() if isinstance(one.X, Tensor) else one.X,
                "mean": {one.name: one.mean},
                "std": {one.name: one.std},
                "observed": one.observed,
                "probability_feasible": one.probability_feasible,
            }
            for which, one in shown
        ]

    @property
    def recommended(self) -> "Best":
        """The point of the best mean anywhere, evaluated or not."""
        return self if self.elsewhere is None else self.elsewhere

    def __repr__(self) -> str:
        feasible = "" if self.probability_feasible >= 1.0 else f", feasible with {self.probability_feasible:.2f}"
        more = "" if self.elsewhere is None else f", recommended {self.elsewhere}"
        return f"Best({shown_point(self.X)}: {with_uncertainty(self.mean, self.std)}{feasible}{more})"

    def _repr_html_(self) -> str:
        rows = [self._row("best evaluated")]
        if self.elsewhere is not None:
            rows.append(self.elsewhere._row("recommended"))
        return html_rows("Best", rows)

    def _row(self, what: str) -> dict[str, Any]:
        return {
            "": what,
            "point": shown_point(self.X),
            "expected": with_uncertainty(self.mean, self.std),
            "observed": "" if self.observed is None else self.observed,
            "probability feasible": self.probability_feasible,
        }


def find_best(state: LoopState, settings: LoopSettings, *, anywhere: bool) -> Best:
    """Find the best evaluated point, and the one that the model recommends.

    The best evaluated one has the best posterior mean, or the best outcome if there is little noise. It keeps the
    constraints with a probability of 0.9, or as observed if they have no noise; the likeliest to do so is taken, if
    none does. Of earlier runs, which the model does not know, the best outcome is compared with that mean.

    Args:
        state: With a model, if the current run has data.
        settings: Of the loop.
        anywhere: Whether what is recommended is returned, be it evaluated or not.
    """
    before = _best_of_earlier_runs(state, settings)
    if before is not None and not bool(current(state, settings).is_informative.any()):
        return before
    best = _best_of_run(state, settings, anywhere=anywhere)
    if before is None:
        return best
    is_better = before.mean > best.mean if settings.objectives[0].maximize else before.mean < best.mean
    return before if is_better else best


def best_evaluated(state: LoopState, settings: LoopSettings) -> Best:
    """The best evaluated point of the current run, without a search for a recommendation.

    Args:
        state: With a model.
        settings: Of the loop.
    """
    return _best_known(state, settings, make_context(state, settings))[0]


def _best_known(state: LoopState, settings: LoopSettings, context: Context) -> tuple[Best, Tensor, Observations]:
    """The best evaluated point, the same as the loop keeps it, and all that tells something."""
    data = current(state, settings)
    known = data.rows(data.is_informative)
    evaluated = torch.cat([known.points, torch.unique(data.pairs.flatten(0, 1), dim=0)])
    is_within = are_within(settings, evaluated)
    score, chance = _judge(context, settings, evaluated)
    assert state.surrogate is not None
    if not settings.is_preference:
        if _is_best_by_outcome(state.surrogate, settings, known):
            y = _mean_of_repeats(known)
            score = torch.where(y.isnan(), score, y if settings.objectives[0].maximize else -y)
        first = len(settings.objectives)
        for j, one in enumerate(settings.constraints):
            if is_taken_at_its_word(state.surrogate, settings, known, first + j):
                y = known.y[:, first + j]
                chance[:, j] = torch.where(y.isnan(), chance[:, j], one.is_kept(y).to(chance))
    if bool(is_within.any()):  # in the range as it is now, not where it was before
        score, chance = score.masked_fill(~is_within, -torch.inf), chance.masked_fill(~is_within.unsqueeze(-1), 0.0)
    index = int(most_wanted(score, chance.prod(-1)))
    point = evaluated[index : index + 1]
    return _describe(state, settings, point, known, float(chance[index].prod())), point, known


def are_within(settings: LoopSettings, points: Tensor) -> Bool[Tensor, " n"]:
    """Mark points that can be suggested; what was told may lie outside the range, or miss a sum by a little."""
    projected = settings.space.project(points)
    if projected is points:
        return torch.ones(len(points), dtype=torch.bool)
    return ((projected - points).abs() <= _NEARLY).all(-1)


def is_taken_at_its_word(
    surrogate: AbstractSurrogate, settings: LoopSettings, known: Observations, output: int
) -> bool:
    """Tell whether an outcome is the function itself: without noise and ripples, or repeated to the last digit."""
    is_repeated = settings.outcomes[output].has_unknown_noise and bool(known.repeats)
    return is_repeated or surrogate.is_deterministic(output)


def _is_best_by_outcome(surrogate: AbstractSurrogate, settings: LoopSettings, known: Observations) -> bool:
    """Tell whether the best outcome is recommended, and not the best mean: where there is next to no noise.

    Less noise than its prior's mode is held up by the prior alone. To trust outcomes where there is that little costs
    next to nothing, and to trust the mean where there is none can cost a lot.
    """
    if settings.outcomes[0].has_unknown_noise:
        return surrogate.noise_share(0) < NOISE_MODE or bool(known.repeats)
    return surrogate.is_noise_free(0)


def _mean_of_repeats(known: Observations) -> Float[Tensor, " n"]:
    """The objective, on average over outcomes of the same point."""
    _, index, counts = torch.unique(known.points, dim=0, return_inverse=True, return_counts=True)
    if len(counts) == len(index):
        return known.y[:, 0]
    # Of shares and not of a sum, which may have no double.
    is_known = ~known.y[:, 0].isnan()
    counts = counts.new_zeros(len(counts)).index_add(0, index, is_known.to(counts))
    shares = known.y[:, 0] / counts[index]
    means = shares.new_zeros(len(counts)).index_add(0, index[is_known], shares[is_known])
    return means.masked_fill(counts == 0, torch.nan)[index]


def _best_of_run(state: LoopState, settings: LoopSettings, *, anywhere: bool) -> Best:
    context = make_context(state, settings)
    best, point, known = _best_known(state, settings, context)
    # The best mean anywhere is at least that of an evaluated point; within a context, of one that belongs to it.
    is_within = torch.equal(settings.space.project(point), point)
    points = torch.cat([point if is_within else point[:0], _maximizer(context, settings)])
    score, chance = _judge(context, settings, points)
    index = int(most_wanted(score, chance.prod(-1)))
    recommended = _describe(state, settings, points[index : index + 1], known, float(chance[index].prod()))
    return recommended if anywhere else replace(best, elsewhere=recommended)


@torch.no_grad()
def _judge(context: Context, settings: LoopSettings, points: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of the objective, and the probability that each constraint holds."""
    posterior: Any = context.model.posterior(settings.space.inputs(points))
    # Whether an evaluation would fail, the last column if there is one, does not matter to a point that is known.
    chance = context.objective.feasibility(posterior)[:, : len(settings.constraints)]
    return context.objective.score(posterior.mean), chance.clone()


def _describe(state: LoopState, settings: LoopSettings, point: Tensor, known: Observations, chance: float) -> Best:
    predicted = predict_objective(state, settings, settings.space.inputs(point))
    is_here = point[0] == known.points
    is_here = is_here.all(-1) if is_here.dim() == 2 else is_here
    observed = known.y[is_here, 0].nanmean()
    return Best(
        X=settings.space.show(point)[0],
        mean=float(predicted.mean[0]),
        std=float(predicted.std[0]),
        probability_feasible=chance,
        observed=None if observed.isnan() else float(observed),
        name=settings.objectives[0].name,
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


def most_wanted(score: Float[Tensor, " n"], chance: Float[Tensor, " n"]) -> Int[Tensor, ""]:
    """Index of the best point among those that are surely feasible; of the likeliest one, if none is."""
    is_sure = chance >= _SURE
    return score.masked_fill(~is_sure, -torch.inf).argmax() if is_sure.any() else chance.argmax()


def _maximizer(context: Context, settings: LoopSettings) -> Tensor:
    function = FeasibleMean(context.model, context.objective)
    seed = derived_seed(settings.seed, 1)
    return context.space.maximize(function, 1, settings.search, seed=seed, centers=context.centers())
