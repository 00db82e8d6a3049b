"""The response scale: prevalences, rates and values instead of latent numbers and counts."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.pool import Pool, read_candidates
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.errors import ArgumentTypeError
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["exceedance", "exceedance_probability", "expected_slope", "latent_threshold", "score_exceedance"]


def exceedance(
    gp: SparseGP | ConditionedGP,
    pool_X: Tensor,
    candidates: Any = None,
    *,
    likelihood: AbstractLikelihood,
    threshold: float,
    pending: Any = None,
) -> Tensor:
    r"""The entropy of whether the response at each candidate is above a threshold.

    With the probability $\pi$ that it is, $-\pi \log \pi - (1 - \pi) \log (1 - \pi)$. What an observation would tell of
    other places is not looked at.

    Args:
        gp: The belief.
        pool_X: Inputs `(n, d)` of all members.
        candidates: Indices of the members to be scored; all by default.
        likelihood: Gives the response: the prevalence of Bernoulli and Binomial outcomes, the rate of counts, the value
            of real numbers, all without the noise of an observation.
        threshold: Of the response.
        pending: Indices of members whose observations are awaited.

    Returns:
        Scores `(c,)`, between 0 and log 2.
    """
    pool = Pool.read(gp, pool_X, likelihood=likelihood, targets=None, weights=None, pending=pending)
    return score_exceedance(pool, read_candidates(candidates, pool), threshold)


def score_exceedance(pool: Pool, candidates: Int[Tensor, " c"], threshold: float) -> Float[Tensor, " c"]:
    """Score candidates of a pool that was read."""
    mean, variance = pool.belief.mean[candidates], pool.belief.variance[candidates]
    above = exceedance_probability(mean, variance, latent_threshold(pool.likelihood, threshold))
    return torch.special.entr(above) + torch.special.entr(1.0 - above)


def expected_slope(
    likelihood: AbstractLikelihood, mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    r"""The expected slope of the response, $\mathbb{E}[g'(f)] = \partial \mathbb{E}[g(f)] / \partial m$.

    Args:
        likelihood: Gives the response $g$.
        mean: Mean $m$ of the latent value.
        variance: Its variance.
    """
    with torch.enable_grad():
        m = mean.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad(likelihood.per_unit().predictive_mean(m, variance.detach()).sum(), m)
    return slope


def latent_threshold(likelihood: AbstractLikelihood, threshold: Any) -> float:
    """The latent value whose response is a threshold; the larger the one, the larger the other.

    Args:
        likelihood: Gives the response.
        threshold: A prevalence, a rate, or a value.
    """
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise ArgumentTypeError(f"threshold must be a number, but is a {type(threshold).__name__}.")
    return float(likelihood.inverse_response(likelihood.check_response(threshold, "threshold")))


def exceedance_probability(
    mean: Float[Tensor, " n"], variance: Float[Tensor, " n"], latent: float
) -> Float[Tensor, " n"]:
    """The probability that a latent value is above a threshold."""
    deviation = variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()
    probability: Tensor = torch.special.ndtr((mean - latent) / deviation)
    return probability
