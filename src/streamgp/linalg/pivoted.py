"""Greedy pivoted Cholesky of a weighted kernel matrix that is never formed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.linalg.lapack import dpstrf
from torch import Tensor

from streamgp.errors import NumericalError
from streamgp.linalg.cholesky import cholesky, solve_lower
from streamgp.threads import limit_threads

__all__ = ["PivotedCholesky", "pivoted_cholesky"]

# A residual below this share of the largest initial one is rounding, and its point a copy of earlier pivots.
_EXHAUSTED = {torch.float64: 1e-12, torch.float32: 1e-6}


@final
@dataclass(frozen=True)
class PivotedCholesky:
    """Pivots of a greedy factorization, in the order of choice.

    Attributes:
        pivots: Indices of the chosen points. Where a member of a batch was exhausted before the others, its last
            entries repeat its first pivot.
        is_chosen: False for those repeated entries.
        residual: What is left of the weighted diagonal; its sum is the error of the approximation in trace norm.
    """

    pivots: Int[Tensor, "*b p"]
    is_chosen: Bool[Tensor, "*b p"]
    residual: Float[Tensor, "*b n"]


def pivoted_cholesky(
    covariance: Callable[[Tensor, Tensor], Tensor],
    inputs: Float[Tensor, "*b n d"],
    num_pivots: int,
    *,
    variance: Float[Tensor, "*b n"],
    weights: Float[Tensor, "*b n"] | None = None,
    start: Int[Tensor, "*b s"] | None = None,
) -> PivotedCholesky:
    r"""Choose the points that explain most of $W^{1/2} K W^{1/2}$, one after the other.

    Each step takes the point with the largest remaining diagonal and removes what it explains. One row of the kernel
    matrix is evaluated for each pivot: $O(n p)$ memory and $O(n p^2)$ time. Where all rows together are no larger than
    the factor ($n \le 2p$), LAPACK does the same on the whole matrix.

    Args:
        covariance: The kernel $k(X, X')$ as a function of two sets of inputs.
        inputs: The $n$ points to choose from.
        num_pivots: How many to choose; fewer come back if the residual is exhausted before.
        variance: The diagonal of $K$.
        weights: The diagonal of $W$; ones by default. A point of weight zero is never chosen.
        start: Pivots to begin with, as if they had been chosen first.

    Returns:
        The pivots and the residual diagonal.

    References:
        Harbrecht, Peters, Schneider (2012), On the low-rank approximation by the pivoted Cholesky decomposition.
        Burt, Rasmussen, van der Wilk (2019), Rates of convergence for sparse variational Gaussian process regression.
    """
    batch, n = inputs.shape[:-2], inputs.shape[-2]
    num_pivots = min(num_pivots, n)
    root = torch.ones_like(variance) if weights is None else weights.sqrt()
    residual = variance * root.square()
    if not torch.isfinite(residual.detach()).all():
        raise NumericalError(
            "The variances of points to choose from, times their weights, are beyond what numbers can hold.",
            advice="Check the scale of the kernel, of the inputs and of the noise.",
        )
    floor = _EXHAUSTED[inputs.dtype] * residual.amax(-1, keepdim=True).clamp_min(torch.finfo(inputs.dtype).tiny)
    if start is None and 0 < n <= 2 * num_pivots:
        K = covariance(inputs, inputs) * root.unsqueeze(-1) * root.unsqueeze(-2)
        return _factorize_whole(K, num_pivots, floor)
    # Row j of the factor is contiguous, so that the product with all earlier rows streams through memory.
    rows = inputs.new_zeros(*batch, num_pivots, n)
    pivots = torch.zeros(*batch, num_pivots, dtype=torch.long, device=inputs.device)
    is_chosen = torch.zeros(*batch, num_pivots, dtype=torch.bool, device=inputs.device)
    num_done = 0
    if start is not None and start.shape[-1]:
        num_done = min(start.shape[-1], num_pivots)
        start = start[..., :num_done]
        rows[..., :num_done, :] = _start_rows(covariance, inputs, root, start)
        residual = (residual - rows[..., :num_done, :].square().sum(-2)).scatter(-1, start, 0.0).clamp_min(0.0)
        pivots[..., :num_done] = start
        is_chosen[..., :num_done] = True
    for j in range(num_done, num_pivots):
        largest, pivot = residual.max(-1, keepdim=True)
        is_alive = largest > floor
        if not is_alive.any():
            pivots, is_chosen = pivots[..., :j], is_chosen[..., :j]
            break
        # (*b, n): the pivot's row of the weighted kernel matrix, less what earlier pivots explain of it.
        row = covariance(_take(inputs, pivot), inputs).squeeze(-2) * root * root.gather(-1, pivot)
        if j:
            at_pivot = _take(rows[..., :j, :].mT, pivot)
            row = row - (at_pivot @ rows[..., :j, :]).squeeze(-2)
        row = torch.where(is_alive, row / largest.sqrt(), 0.0)
        rows[..., j, :] = row
        residual = (residual - row.square()).scatter(-1, pivot, 0.0).clamp_min_(0.0)
        pivots[..., j : j + 1] = torch.where(is_alive, pivot, pivots[..., :1])
        is_chosen[..., j : j + 1] = is_alive
    return PivotedCholesky(pivots, is_chosen, residual)


def _factorize_whole(K: Tensor, num_pivots: int, floor: Tensor) -> PivotedCholesky:
    """Choose pivots by LAPACK, one member of the batch after the other."""
    batch, n = K.shape[:-2], K.shape[-1]
    matrices = K.detach().double().reshape(-1, n, n).cpu().numpy()
    pivots = np.zeros((len(matrices), num_pivots), dtype=np.int64)
    is_chosen = np.zeros(pivots.shape, dtype=bool)
    residual = np.empty((len(matrices), n))
    for i, (matrix, stop) in enumerate(zip(matrices, floor.double().reshape(-1).tolist(), strict=True)):
        with limit_threads():
            factor, order, rank, _ = dpstrf(matrix, tol=stop, lower=1)
        rank = min(rank, num_pivots)
        order = order - 1
        pivots[i], is_chosen[i, :rank] = order[0], True
        pivots[i, :rank] = order[:rank]
        explained = np.square(np.tril(factor)[:, :rank]).sum(1)
        residual[i, order] = np.maximum(matrix.diagonal()[order] - explained, 0.0)
        residual[i, order[:rank]] = 0.0
    most = int(is_chosen.sum(1).max())
    return PivotedCholesky(
        torch.from_numpy(pivots[:, :most]).to(K.device).reshape(*batch, most),
        torch.from_numpy(is_chosen[:, :most]).to(K.device).reshape(*batch, most),
        torch.from_numpy(residual).to(K).reshape(*batch, n),
    )


def _start_rows(covariance: Callable[[Tensor, Tensor], Tensor], inputs: Tensor, root: Tensor, start: Tensor) -> Tensor:
    """Rows of the factor for pivots that are given: one block instead of one step each."""
    chosen = _take(inputs, start)
    weight = root.gather(-1, start)
    corner = covariance(chosen, chosen) * weight.unsqueeze(-1) * weight.unsqueeze(-2)
    factor, _ = cholesky(corner, name="the kernel matrix of the starting pivots")
    return solve_lower(factor, covariance(chosen, inputs) * weight.unsqueeze(-1) * root.unsqueeze(-2))


def _take(values: Tensor, indices: Tensor) -> Tensor:
    """Rows of a `(*b, n, d)` tensor at `(*b, k)` indices."""
    return values.gather(-2, indices.unsqueeze(-1).expand(*indices.shape, values.shape[-1]))
