"""A pool as acquisition functions see it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.indices import check_constants, read_indices, read_weights
from streamgp.acquisition.pool_belief import PoolBelief
from streamgp.checks import check_inputs
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.errors import ArgumentTypeError, NumericalError, ShapeError, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["Bound", "Pool", "Score", "choose_greedily", "read_candidates"]


@final
@dataclass(frozen=True, eq=False)
class Pool:
    """A belief about a pool, how its members are observed, and which of them matter.

    Attributes:
        belief: About all members.
        likelihood: Of an observation; its constants are numbers, or have one value for each member.
        targets: Members over which gains are summed.
        weights: How much each target counts.
        costs: What it costs to observe each member; None where all cost the same.
    """

    belief: PoolBelief
    likelihood: AbstractLikelihood
    targets: Int[Tensor, " t"]
    weights: Float[Tensor, " t"]
    costs: Float[Tensor, " n"] | None = None

    @classmethod
    def read(cls, gp: Any, pool_X: Any, *, likelihood: Any, targets: Any, weights: Any, pending: Any) -> "Pool":
        """Check what a user passed to an acquisition function; None stands for all, equal and none."""
        if not isinstance(gp, SparseGP | ConditionedGP):
            raise ArgumentTypeError(
                f"gp must be a SparseGP or a ConditionedGP, but is a {type(gp).__name__}. "
                "Pass the gp of what streamgp.fit returned, or make one with streamgp.from_gpytorch."
            )
        like = gp.process.reference
        if gp.process.batch_shape:
            raise UnsupportedError(
                f"gp has leading axes {tuple(gp.process.batch_shape)}, but a pool has one belief. Pass one GP."
            )
        X = check_inputs(pool_X, num_dims=like.shape[-1], like=like, name="pool_X").detach()
        if X.dim() != 2 or not len(X):
            raise ShapeError(
                f"pool_X must have shape (n, d), one row for each of at least one member, but has {tuple(X.shape)}."
            )
        n = len(X)
        chosen = torch.arange(n) if targets is None else read_indices(targets, n, "targets")
        pool = cls(
            PoolBelief.of(gp, X),
            check_constants(likelihood, n),
            chosen,
            X.new_ones(len(chosen)) if weights is None else read_weights(weights, n).to(X)[chosen],
        )
        for member in () if pending is None else read_indices(pending, n, "pending").tolist():
            pool = pool.awaiting(member)
        return pool

    def precision(self, members: Int[Tensor, " k"]) -> Float[Tensor, " k"]:
        r"""The precision $\tau$ of the Gaussian site that an observation of each member is expected to be.

        The inverse of the noise for Gaussian observations. For others the curvature of the log density, expected under
        what is predicted of the latent value and of the outcome; it is what the noise of an equally informative
        Gaussian observation would be, before the outcome is known.
        """
        likelihood, belief = self.likelihood.at_rows(members), self.belief
        with torch.no_grad():
            return likelihood.expected_curvature(belief.mean[members], belief.variance[members]).clamp_min(0.0)

    def awaiting(self, member: int) -> "Pool":
        """The pool with one more observation awaited, whose outcome is not known yet."""
        precision = self.precision(torch.tensor([member])).squeeze(0)
        return replace(self, belief=self.belief.await_observation(member, precision))


Score = Callable[[Pool, Int[Tensor, " c"]], Float[Tensor, " c"]]
# What scores of members are at most when one more observation is awaited, from what they were at most before.
Bound = Callable[[Pool, Pool, Int[Tensor, " c"], Float[Tensor, " c"]], Float[Tensor, " c"]]

# Members that are scored first because they may be best, and how many more each time that is not settled.
_FIRST_SCORED, _GROWTH = 512, 4


def choose_greedily(
    score: Score, pool: Pool, candidates: Int[Tensor, " c"], q: int, *, bound: Bound | None = None
) -> Int[Tensor, " q"]:
    """Choose members one after the other, each given that those before will be observed.

    Args:
        score: Acquisition function of the pool and some members; the largest is best.
        pool: The pool.
        candidates: Members to choose from, at least `q`.
        q: How many.
        bound: What scores are at most after an observation; members that cannot be best are not scored again.
    """
    chosen: list[int] = []
    limits = torch.full((len(candidates),), torch.inf, dtype=pool.belief.mean.dtype)
    for k in range(q):
        limits, place = _find_best(score, pool, candidates, limits)
        best, is_left = int(candidates[place]), torch.arange(len(candidates)) != place
        chosen.append(best)
        candidates, limits = candidates[is_left], limits[is_left]
        if k < q - 1:
            before, pool = pool, pool.awaiting(best)
            limits = torch.full_like(limits, torch.inf) if bound is None else bound(before, pool, candidates, limits)
    return torch.tensor(chosen, dtype=torch.long)


def _find_best(
    score: Score, pool: Pool, candidates: Int[Tensor, " c"], limits: Float[Tensor, " c"]
) -> tuple[Float[Tensor, " c"], int]:
    """Find the place of the best candidate, and what scores are at most now: themselves for those that were scored."""
    limits, values = limits.clone(), torch.full_like(limits, -torch.inf)
    # Limits that are level with the best are within its rounding.
    most = _per_cost(limits * (1.0 + torch.finfo(limits.dtype).eps ** 0.5), pool, candidates)
    order = most.argsort(descending=True, stable=True)
    start, size = 0, len(order) if most.isinf().all() else _FIRST_SCORED
    while start < len(order) and (start == 0 or most[order[start]] >= values.max()):
        part = order[start : start + size].sort().values
        limits[part] = scores = score(pool, candidates[part]).to(limits)
        if not bool(scores.isfinite().all()):
            raise NumericalError(
                f"{int((~scores.isfinite()).sum())} of {len(scores)} scores of members are NaN or infinite, so no "
                "member can be chosen. Check the scale of inputs and outcomes, and the fitted hyperparameters."
            )
        values[part] = _per_cost(scores, pool, candidates[part])
        start, size = start + len(part), size * _GROWTH
    return limits, int(values.argmax())


def _per_cost(scores: Float[Tensor, " c"], pool: Pool, members: Int[Tensor, " c"]) -> Float[Tensor, " c"]:
    """Divide scores by costs; a loss weighs more where it costs more."""
    if pool.costs is None:
        return scores
    costs = pool.costs[members].to(scores)
    return torch.where(scores > 0, scores / costs, scores * costs)


def read_candidates(candidates: Any, pool: Pool) -> Int[Tensor, " c"]:
    """Members to be scored; all by default."""
    n = len(pool.belief.inputs)
    return torch.arange(n) if candidates is None else read_indices(candidates, n, "candidates")
