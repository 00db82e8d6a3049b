"""Integrated posterior variance: how much an observation reduces the variance over a pool."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.pool import Pool, read_candidates
from streamgp.acquisition.pool_belief import blocks
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["bound_integrated_variance", "integrated_variance", "score_integrated_variance"]


def integrated_variance(
    gp: SparseGP | ConditionedGP,
    pool_X: Tensor,
    candidates: Any = None,
    *,
    likelihood: AbstractLikelihood,
    targets: Any = None,
    weights: Any = None,
    pending: Any = None,
) -> Tensor:
    r"""The reduction of the latent variance, summed over a pool, by an observation of each candidate.

    In closed form, with the covariance $k$ of the belief and the expected noise $\sigma_c^2$ of an observation,

    $$
    \sum_t w_t \frac{k(c, t)^2}{k(c, c) + \sigma_c^2} .
    $$

    For likelihoods that are not Gaussian, the noise is the inverse of the expected curvature of the log density under
    the prediction. No model is built for a candidate, and memory is bounded whatever the size of the pool.

    Args:
        gp: The belief.
        pool_X: Inputs `(n, d)` of all members.
        candidates: Indices of the members to be scored; all by default.
        likelihood: Of an observation; its constants are numbers, or have shape `(n,)`.
        targets: Indices of the members over which variances are summed; all by default.
        weights: How much the variance of each member counts, `(n,)`; one by default.
        pending: Indices of members whose observations are awaited.

    Returns:
        Scores `(c,)`, none of them negative.
    """
    pool = Pool.read(gp, pool_X, likelihood=likelihood, targets=targets, weights=weights, pending=pending)
    return score_integrated_variance(pool, read_candidates(candidates, pool))


def score_integrated_variance(pool: Pool, candidates: Int[Tensor, " c"]) -> Float[Tensor, " c"]:
    """The same of a pool that was read."""
    belief, columns = pool.belief, pool.belief.columns(pool.targets)
    precision = pool.precision(candidates)
    total = torch.empty_like(precision)
    for part, members in blocks(candidates, columns.row_numbers):
        cross = columns.cross(belief.inputs[members], belief.roots[:, members])
        total[part] = cross.square_() @ pool.weights
    # With the precision, and not the noise, which is infinite where an observation tells nothing.
    return total * precision / (1.0 + precision * belief.variance[candidates])


def bound_integrated_variance(
    before: Pool, after: Pool, candidates: Int[Tensor, " c"], scores: Float[Tensor, " c"]
) -> Float[Tensor, " c"]:
    r"""What scores are at most when one more observation is awaited, without a covariance.

    It takes $r_c r_t$ from the covariances of a candidate with the targets, so that their weighted norm grows by no
    more than $\lvert r_c \rvert \, \lVert r \rVert$.

    Args:
        before: The pool.
        after: The same with the observation.
        candidates: Members.
        scores: What their scores before are at most.
    """
    precision, root = before.precision(candidates), after.belief.roots[-1]
    total = scores * (1.0 + precision * before.belief.variance[candidates]) / precision  # nothing is known without one
    norm = (after.weights @ root[after.targets].square()).sqrt()
    total = (total.sqrt() + norm * root[candidates].abs()).square()
    precision = after.precision(candidates)
    limits = total * precision / (1.0 + precision * after.belief.variance[candidates])
    return torch.where(limits.isfinite(), limits, torch.inf)
