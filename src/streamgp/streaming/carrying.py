"""Beliefs of a bank under another kernel, at other inducing points."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.linalg import cholesky, solve_lower, symmetric_eigen
from streamgp.streaming.bank import Bank

__all__ = ["carry"]

# The share alpha of what new inducing points leave open that counts as noise, and by how much precisions may shrink for
# it at once. Streams of 24 000 rows that do not change became worse and worse without; without the limit, a stream that
# learns shorter lengthscales forgets what it has left.
_OPEN_SHARE, _MOST_WIDENED = 0.1, 0.5
# Directions of which less is known are as good as unknown.
_LEAST_KNOWN = 1e-12


def carry(bank: Bank, other: Bank) -> Bank:
    r"""The belief of a bank under the kernel and at the inducing points of another.

    A belief is its prior times a site, $\Lambda = S^{-1} - E$, $\lambda = S^{-1} m$ in the state, with $E = 1$ but for
    the level, which has no prior left: it walks at random. The part for the inducing values moves with
    $T = L^{-1} k_\theta(Z, Z') L'^{-\top}$, the rest stays. The site is about the old values, of which the new points
    leave the covariance $D$ open:

    $$
    \tilde \Lambda = (\Lambda^{-1} + \alpha D)^{-1} , \qquad
    \Lambda \leftarrow T \tilde \Lambda T^\top, \qquad
    \lambda \leftarrow T \tilde \Lambda \Lambda^{-1} (\lambda + \Lambda \eta) ,
    $$

    where $\eta$ makes up in the state for the change of the constant, so that the function stays where it is. As no
    state is wider than its prior, $\Lambda$ is positive, whatever the kernels. Without $D$ a belief from many rows
    would be sure of a function that the new points cannot express, and the longer a stream, the farther it would be
    from what its rows say. In no direction does a precision shrink by more than a third at once: regions that the
    stream has left would be forgotten where new lengthscales are short.

    Args:
        bank: The belief.
        other: Has the kernel, the inducing points and the constant.
    """
    Z, Z_old = other.inducing_points, bank.inducing_points
    K = other.process.prior.covariance(Z_old, Z)
    T = other.whitening @ (bank.whitening @ K).mT
    L, _ = cholesky(bank.covariance, name="the covariance of the carried state")
    half = solve_lower(L, torch.eye(L.shape[-1], dtype=T.dtype).expand_as(L))
    site = half.mT @ half - _without_level(L.shape[-1])
    pull = half.mT @ (half @ bank.mean.unsqueeze(-1)) + site @ _shift(bank, other.constant).unsqueeze(-1)
    site, pull = _widened(site, pull, _open_root(bank, other, T))
    T = torch.block_diag(T, torch.eye(Z.shape[-1] + 1, dtype=T.dtype))
    pull = T @ pull
    values, vectors = symmetric_eigen(T @ site @ T.mT, name="the site of the carried state")
    precision = _without_level(len(T)) + (vectors * values.clamp_min(0.0).unsqueeze(-2)) @ vectors.mT
    L_P, _ = cholesky(precision, name="the precision of the carried state")
    root = solve_lower(L_P, torch.eye(len(T), dtype=T.dtype).expand_as(L_P))
    mean = (root.mT @ (root @ pull)).squeeze(-1)
    return other.with_belief(mean, root.mT @ root)


def _open_root(bank: Bank, other: Bank, T: Float[Tensor, "m k"]) -> Float[Tensor, "k k"]:
    """A root of what the new points cannot express of the old state: a share of its prior covariance given theirs."""
    Z = bank.inducing_points
    prior = bank.whitening @ other.process.prior.covariance(Z, Z) @ bank.whitening.mT
    values, vectors = symmetric_eigen(prior - T.mT @ T, name="what new inducing points leave open of old ones")
    return vectors * (_OPEN_SHARE * values.clamp_min(0.0)).sqrt().unsqueeze(-2)


def _widened(
    site: Float[Tensor, "e c k k"], pull: Float[Tensor, "e c k 1"], root: Float[Tensor, "m m"]
) -> tuple[Float[Tensor, "e c k k"], Float[Tensor, "e c k 1"]]:
    """The site of a state to which a Gaussian variable was added, given by a root of its covariance; within limits.

    With the eigenvalues of what is known of that variable, precisions along its eigenvectors are divided by one more.
    """
    m = len(root)
    G = site[..., :m] @ root
    values, vectors = symmetric_eigen(root.mT @ G[..., :m, :], name="what is known of what is left open")
    values = values.clamp_min(_LEAST_KNOWN)
    added = values.clamp_max(_MOST_WIDENED)
    V = vectors * (added / (values * (1.0 + added))).sqrt().unsqueeze(-2)
    H = G @ V
    return site - H @ H.mT, pull - H @ ((root @ V).mT @ pull[..., :m, :])


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
