"""Integrated variance of the response: how much an observation explains of prevalences or rates over a pool."""

from dataclasses import replace
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.integrated_variance import score_integrated_variance
from streamgp.acquisition.members import likelihood_of
from streamgp.acquisition.pool import Pool, read_candidates
from streamgp.acquisition.response import expected_slope
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["response_variance", "score_response_variance"]


def response_variance(
    gp: SparseGP | ConditionedGP,
    pool_X: Tensor,
    candidates: Any = None,
    *,
    likelihood: AbstractLikelihood,
    targets: Any = None,
    weights: Any = None,
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
    return score_response_variance(pool, read_candidates(candidates, pool))


def score_response_variance(pool: Pool, candidates: Int[Tensor, " c"]) -> Float[Tensor, " c"]:
    """The same of a pool that was read."""
    belief, members = pool.belief, pool.targets
    slope = expected_slope(likelihood_of(pool.likelihood, members), belief.mean[members], belief.variance[members])
    return score_integrated_variance(replace(pool, weights=pool.weights * slope.square()), candidates)
