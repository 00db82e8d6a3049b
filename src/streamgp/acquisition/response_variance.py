"""Integrated variance of the response: how much an observation explains of prevalences or rates over a pool."""

import math
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.integrated_variance import score_integrated_variance
from streamgp.acquisition.pool import Pool, read_candidates
from streamgp.acquisition.response import exceedance_probability, expected_slope, latent_threshold
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["response_variance", "score_response_variance"]

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
    r"""What an observation of each candidate explains of the variance of the response, summed over a pool.

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
    """The same of a pool that was read."""
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
