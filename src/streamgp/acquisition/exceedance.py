"""Uncertainty about which side of a threshold a place is on."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.pool import Pool, read_candidates
from streamgp.acquisition.response import exceedance_probability, latent_threshold
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["exceedance", "score_exceedance"]


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
    """The same of a pool that was read."""
    mean, variance = pool.belief.mean[candidates], pool.belief.variance[candidates]
    above = exceedance_probability(mean, variance, latent_threshold(pool.likelihood, threshold))
    return torch.special.entr(above) + torch.special.entr(1.0 - above)
