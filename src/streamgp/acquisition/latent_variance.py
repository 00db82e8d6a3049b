"""Plain uncertainty: the variance of the latent function."""

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.pool import Pool, read_candidates
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["latent_variance", "score_latent_variance"]


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
    """The same of a pool that was read."""
    return pool.belief.variance[candidates]
