"""Rules that learn a map: what an observation is expected to tell of a region, or of all places."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.utils.transforms import t_batch_mode_transform
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.context import Context
from streamgp.acquisition.goals import AbstractGoal, AbstractRegionGoal, Map
from streamgp.acquisition.lookahead import Lookahead
from streamgp.acquisition.pool import Pool
from streamgp.acquisition.pool_belief import PoolBelief, blocks
from streamgp.acquisition.rules.pool_rules import AbstractPoolRule
from streamgp.errors import OptionError, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.seeds import derived_seed
from streamgp.storage import register

__all__ = [
    "AbstractGoalRule",
    "ExpectedVolumeChange",
    "GlobalMutualInformation",
    "IntegratedError",
    "StepwiseUncertaintyReduction",
]

# Numbers that the temporaries of one pair of candidate and target take.
_PAIR_NUMBERS = 16
# Points among which the search finds the places near which it looks again, and how many of these.
_NUM_SCREENED, _NUM_CENTERS = 256, 4


@dataclass(frozen=True)
class AbstractGoalRule(AbstractPoolRule):
    """A rule that sums over targets what an observation tells of them, for a goal.

    In a pool, targets are its members, and all candidates are scored by one matrix product for each block; in a box or
    a mixed space they are quasi-random points, and the search follows the gradient. What is pending reduces variances
    exactly as observations with the expected curvature do; with Gaussian noise that is all they do.

    Attributes:
        goal: What is to be found out; that of the learner by default.
        num_targets: Number of targets in a space that is no pool; more cost time in proportion.
    """

    goal: AbstractGoal | None = None
    num_targets: int = 400

    @abstractmethod
    def value(self, lookahead: Lookahead) -> Float[Tensor, " c"]:
        """Score candidates."""

    def with_goal(self, goal: AbstractGoal) -> "AbstractGoalRule":
        """Return the rule with a goal, unless it has its own."""
        return self if self.goal is not None else replace(self, goal=goal)

    def check(self, likelihood: AbstractLikelihood) -> None:
        """Refuse a goal that is no region, and thresholds that are no response."""
        if not isinstance(self.goal, AbstractRegionGoal):
            raise OptionError(
                f"The rule {type(self).__name__} needs a goal that is a region, such as goal=streamgp.LevelSet(0.75)."
            )
        self.goal.check(likelihood)

    def edges(self, likelihood: AbstractLikelihood) -> tuple[float, ...]:
        """Latent values between which the region lies."""
        assert isinstance(self.goal, AbstractRegionGoal)
        return self.goal.edges(likelihood)

    @torch.no_grad()
    def score(self, pool: Pool, candidates: Int[Tensor, " c"]) -> Float[Tensor, " c"]:
        """Score members of a pool, in blocks."""
        belief, columns, t = pool.belief, pool.belief.columns(pool.targets), pool.targets
        taken = belief.roots[:, t].square().sum(0)
        edges, total = self.edges(pool.likelihood), torch.empty(len(candidates), dtype=belief.mean.dtype)
        for part, members in blocks(candidates, _PAIR_NUMBERS * columns.row_numbers):
            total[part] = self.value(
                Lookahead(
                    likelihood=pool.likelihood.at_rows(members),
                    mean=belief.mean[members],
                    variance=belief.variance[members],
                    cross=columns.cross(belief.inputs[members], belief.roots[:, members]),
                    target_mean=belief.mean[t],
                    target_variance=belief.variance[t],
                    weights=pool.weights,
                    edges=edges,
                    pending_variance=taken,
                )
            )
        return total

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Choose points one after the other, each given that those before will be observed."""
        if context.pool is not None:
            return super().propose(context, q, seed=seed)
        function, space = self.function(context, seed=seed), context.space
        screened = space.inputs(space.scatter(_NUM_SCREENED, num_before=0, seed=derived_seed(seed, 4), ask=0))
        with torch.no_grad():
            values = function(screened.unsqueeze(-2))
        centers = screened[values.topk(_NUM_CENTERS).indices]
        return space.maximize(function, q, context.search, seed=derived_seed(seed, 2), centers=centers)

    def function(self, context: Context, *, seed: int) -> Any:
        """Make the acquisition function of single inputs `(*b, 1, d)` of a space that is no pool.

        Args:
            context: What it is made from.
            seed: Of the targets.
        """
        space = context.space
        points = space.scatter(self.num_targets, num_before=0, seed=derived_seed(seed, 3), ask=0)
        return _GoalFunction(context, self, space.inputs(points))


@register
@final
@dataclass(frozen=True)
class StepwiseUncertaintyReduction(AbstractGoalRule):
    r"""The expected drop of $\sum_t P_t (1 - P_t)$ by one observation, with the probability $P_t$ of the region.

    References:
        Bect, Ginsbourger, Li, Picheny, Vazquez (2012), Sequential design of computer experiments for the estimation of
        a probability of failure.
    """

    def value(self, lookahead: Lookahead) -> Float[Tensor, " c"]:
        """Score candidates."""
        return lookahead.variance_drop()


@register
@final
@dataclass(frozen=True)
class GlobalMutualInformation(AbstractGoalRule):
    """The mutual information of an outcome and whether each target belongs to the region, summed over targets.

    References:
        Letham, Guan, Tymms, Bakshy, Shvartsman (2022), Look-ahead acquisition functions for Bernoulli level set
        estimation.
    """

    def value(self, lookahead: Lookahead) -> Float[Tensor, " c"]:
        """Score candidates."""
        return lookahead.information()


@register
@final
@dataclass(frozen=True)
class ExpectedVolumeChange(AbstractGoalRule):
    """The expected absolute change of the volume of the region by one observation.

    References:
        Letham, Guan, Tymms, Bakshy, Shvartsman (2022), Look-ahead acquisition functions for Bernoulli level set
        estimation.
    """

    def value(self, lookahead: Lookahead) -> Float[Tensor, " c"]:
        """Score candidates."""
        return lookahead.volume_change()


@register
@final
@dataclass(frozen=True)
class IntegratedError(AbstractGoalRule):
    """The drop of the latent variance, summed over all places: for `Map`."""

    def value(self, lookahead: Lookahead) -> Float[Tensor, " c"]:
        """Score candidates."""
        return lookahead.error_drop()

    def check(self, likelihood: AbstractLikelihood) -> None:
        """Accept every likelihood, and no goal but a map."""
        if not isinstance(self.goal, Map):
            raise OptionError("The rule IntegratedError is for goal=streamgp.Map().")

    def edges(self, likelihood: AbstractLikelihood) -> tuple[float, ...]:
        """None, as a map has no region."""
        return ()


@final
class _GoalFunction(AcquisitionFunction):
    """A rule as an acquisition function of BoTorch, of a fixed set of targets."""

    def __init__(self, context: Context, rule: AbstractGoalRule, targets: Float[Tensor, "t d"]) -> None:
        super().__init__(model=context.model)
        model: Any = context.model
        if model.num_outputs != 1 or model.likelihoods[0] is None:
            raise UnsupportedError(f"{type(rule).__name__} learns one outcome whose likelihood is the same everywhere.")
        self.rule, self.targets, self.gp, self.likelihood = rule, targets, model.gps[0], model.likelihoods[0]
        self.edges = rule.edges(self.likelihood)
        self.before = PoolBelief.of(self.gp, targets).variance
        self.set_X_pending(context.pending_or_none)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802 # as BoTorch calls it
        """Condition on pending points, whose outcomes leave means as they are on average."""
        pending: Any = X_pending
        self.X_pending, gp = pending, self.gp
        if X_pending is not None and len(X_pending):
            with torch.no_grad():
                moments = PoolBelief.of(gp, X_pending)
                precision = self.likelihood.expected_curvature(moments.mean, moments.variance)
                is_told = precision > 0.0
                noise = precision[is_told].reciprocal()
                gp = gp.condition(X_pending[is_told], moments.mean[is_told], noise_variance=noise)
        with torch.no_grad():
            self.belief = PoolBelief.of(gp, self.targets)
            self.columns = self.belief.columns(torch.arange(len(self.targets)))

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type] # BoTorch asks for its base class
    def forward(self, X: Tensor) -> Tensor:
        points, belief = X.reshape(-1, X.shape[-1]), self.belief
        lookahead = Lookahead(
            likelihood=self.likelihood,
            mean=belief.process.mean(points),
            variance=belief.process.variance(points).clamp_min(0.0),
            cross=self.columns.cross(points, points.new_empty(0, len(points))),
            target_mean=belief.mean,
            target_variance=belief.variance,
            weights=torch.full_like(belief.mean, 1.0 / len(belief.mean)),
            edges=self.edges,
            pending_variance=(self.before - belief.variance).clamp_min(0.0),
        )
        return self.rule.value(lookahead).reshape(X.shape[:-2])
