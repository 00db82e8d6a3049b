"""Beliefs of a bank under another kernel, at other inducing points."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.linalg import cholesky, solve_lower, symmetric_eigen
from streamgp.streaming.bank import Bank

__all__ = ["carry"]


def carry(bank: Bank, other: Bank) -> Bank:
    r"""The belief of a bank under the kernel and at the inducing points of another.

    A belief is its prior times a site, $\Lambda = S^{-1} - E$, $\lambda = S^{-1} m$ in the state, with $E = 1$ but for
    the level, which has no prior left: it walks at random. The part for the inducing values moves with
    $T = L^{-1} k_\theta(Z, Z') L'^{-\top}$, the rest stays:

    $$
    \Lambda \leftarrow T \Lambda T^\top, \qquad \lambda \leftarrow T (\lambda + \Lambda \eta) ,
    $$

    where $\eta$ makes up in the state for the change of the constant, so that the function stays where it is. As no
    state is wider than its prior, $\Lambda$ is positive, whatever the kernels.

    Args:
        bank: The belief.
        other: Has the kernel, the inducing points and the constant.
    """
    Z, Z_old = other.inducing_points, bank.inducing_points
    K = other.process.prior.covariance(Z_old, Z)
    T = other.whitening @ (bank.whitening @ K).mT
    T = torch.block_diag(T, torch.eye(Z.shape[-1] + 1, dtype=T.dtype))
    L, _ = cholesky(bank.covariance, name="the covariance of the carried state")
    half = solve_lower(L, torch.eye(L.shape[-1], dtype=T.dtype).expand_as(L))
    site = half.mT @ half - _without_level(L.shape[-1])
    pull = half.mT @ (half @ bank.mean.unsqueeze(-1)) + site @ _shift(bank, other.constant).unsqueeze(-1)
    pull = T @ pull
    values, vectors = symmetric_eigen(T @ site @ T.mT, name="the site of the carried state")
    precision = _without_level(len(T)) + (vectors * values.clamp_min(0.0).unsqueeze(-2)) @ vectors.mT
    L_P, _ = cholesky(precision, name="the precision of the carried state")
    root = solve_lower(L_P, torch.eye(len(T), dtype=T.dtype).expand_as(L_P))
    mean = (root.mT @ (root @ pull)).squeeze(-1)
    return other.with_belief(mean, root.mT @ root)


def _shift(bank: Bank, constant: Float[Tensor, " c"]) -> Float[Tensor, "e c k"]:
    """By how much the state moves where another constant is subtracted: the level, or else the inducing values."""
    change, experts = bank.constant - constant, bank.experts
    shift = torch.zeros_like(bank.mean)
    shift[..., -1] = experts.has_level[:, None] * change
    is_function = (experts.has_level == 0.0) & (experts.amplitudes > 0.0)
    inverse_roots = torch.where(is_function, experts.amplitudes, math.inf).rsqrt()
    ones = bank.whitening.sum(-1)
    shift[..., : bank.num_inducing] = inverse_roots[:, None, None] * change.unsqueeze(-1) * ones
    return shift


def _without_level(size: int) -> Float[Tensor, "k k"]:
    """The identity, but for the last entry."""
    return torch.diag(torch.cat([torch.ones(size - 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)]))
