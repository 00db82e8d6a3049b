"""Integrated posterior variance: how much an observation reduces the variance over a pool."""

import math
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.pool import Pool, read_candidates
from streamgp.acquisition.pool_belief import blocks
from streamgp.acquisition.response import exceedance_probability, expected_slope, latent_threshold
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.likelihoods import AbstractLikelihood

__all__ = [
    "bound_integrated_variance",
    "integrated_variance",
    "latent_variance",
    "response_variance",
    "score_integrated_variance",
    "score_latent_variance",
    "score_response_variance",
]

# A member that is known has no variance to explain; its slope stays finite.
_LEAST_VARIANCE = 1e-12


def response_variance(
    gp: SparseGP | ConditionedGP,
    pool_X: Tensor,
    candidates: Any = None,
    *,
    likelihood: AbstractLikelihood,
    targets: Any = None,
    weights: Any = None,
    threshold: float | None = None,
    pending: Any = None,
) -> Tensor:
    r"""Score candidates by the variance of the response that an observation explains, summed over a pool.

    The response $g(f)$ is a prevalence, a rate or a value. For a Gaussian belief with covariance $k$, Stein's lemma has
    its covariance with a latent value, $\operatorname{Cov}(g(f_t), f_c) = \mathbb{E}[g'(f_t)] \, k(c, t)$, so that the
    best linear prediction of it from an observation with the expected noise $\sigma_c^2$ explains

    $$
    \sum_t w_t \frac{\mathbb{E}[g'(f_t)]^2 \, k(c, t)^2}{k(c, c) + \sigma_c^2} .
    $$

    Places where the response hardly moves, such as those of a prevalence near zero, count little, whatever their latent
    variance. For Gaussian observations it is the integrated variance.

    With a threshold there are two responses, the one above and whether it is above the threshold. Of each, the variance
    that is explained is divided by all there is, and the score is the sum of both shares. Whether $f_t > \theta$ has
    the expected slope $\mathcal{N}(\theta; m_t, v_t)$.

    Args:
        gp: The belief.
        pool_X: Inputs `(n, d)` of all members.
        candidates: Indices of the members to be scored; all by default.
        likelihood: Of an observation; its constants are numbers, or have shape `(n,)`.
        targets: Indices of the members over which variances are summed; all by default.
        weights: How much the variance of each member counts, `(n,)`; one by default.
        threshold: Of the response, if it also matters on which side of it a member is.
        pending: Indices of members whose observations are awaited.

    Returns:
        Scores `(c,)`, none of them negative.
    """
    pool = Pool.read(gp, pool_X, likelihood=likelihood, targets=targets, weights=weights, pending=pending)
    return score_response_variance(pool, read_candidates(candidates, pool), threshold)


def score_response_variance(
    pool: Pool, candidates: Int[Tensor, " c"], threshold: float | None = None
) -> Float[Tensor, " c"]:
    """Score candidates of a pool that was read."""
    importance = _importance(pool) if threshold is None else _shared_importance(pool, threshold)
    return score_integrated_variance(replace(pool, weights=pool.weights * importance), candidates)


def _importance(pool: Pool) -> Float[Tensor, " t"]:
    """The squared slope of the response of each target."""
    belief, members = pool.belief, pool.targets
    likelihood = pool.likelihood.at_rows(members)
    return expected_slope(likelihood, belief.mean[members], belief.variance[members]).square()


def _shared_importance(pool: Pool, threshold: float) -> Float[Tensor, " t"]:
    """The squared slopes of both responses, each over what there is of its variance."""
    belief, members = pool.belief, pool.targets
    mean, variance = belief.mean[members], belief.variance[members].clamp_min(_LEAST_VARIANCE)
    latent = latent_threshold(pool.likelihood, threshold)
    density = torch.exp(-0.5 * (mean - latent).square() / variance) / (2.0 * math.pi * variance).sqrt()
    above = exceedance_probability(mean, variance, latent)
    spread = pool.likelihood.response_variance(mean, variance)
    all_spread, all_doubt = (
        (pool.weights * each).sum().clamp_min(_LEAST_VARIANCE) for each in (spread, above * (1.0 - above))
    )
    return _importance(pool) / all_spread + density.square() / all_doubt


def latent_variance(
    gp: SparseGP | ConditionedGP,
    pool_X: Tensor,
    candidates: Any = None,
    *,
    likelihood: AbstractLikelihood,
    pending: Any = None,
) -> Tensor:
    """The variance of the latent function at each candidate, on the latent scale and without noise.

    Args:
        gp: The belief.
        pool_X: Inputs `(n, d)` of all members.
        candidates: Indices of the members to be scored; all by default.
        likelihood: Of an observation; it says how much is learned from pending ones.
        pending: Indices of members whose observations are awaited.

    Returns:
        Scores `(c,)`.
    """
    pool = Pool.read(gp, pool_X, likelihood=likelihood, targets=None, weights=None, pending=pending)
    return score_latent_variance(pool, read_candidates(candidates, pool))


def score_latent_variance(pool: Pool, candidates: Int[Tensor, " c"]) -> Float[Tensor, " c"]:
    """Score candidates of a pool that was read."""
    return pool.belief.variance[candidates]


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
    """Score candidates of a pool that was read."""
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
    r"""Bound scores when one more observation is awaited, without a covariance.

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
