"""Cholesky factors whose jitter is bounded and reported, and their growth by blocks."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import NumericalError
from streamgp.linalg.triangular import solve_lower
from streamgp.shapes import broadcast_shapes

__all__ = ["cholesky", "extend_cholesky", "grow_cholesky"]

# The jitter tried, relative to the mean of the diagonal. Rounding alone perturbs the eigenvalues of an
# n x n matrix by about n units in the last place, so the ladder starts there, and ends where the
# perturbation would show in the predictions.
_LADDER = {
    torch.float64: (1e-14, 1e-12, 1e-10, 1e-8, 1e-6),
    torch.float32: (1e-6, 1e-5, 1e-4, 1e-3),
}


def cholesky(
    matrix: Float[Tensor, "*b n n"], *, name: str = "the matrix"
) -> tuple[Float[Tensor, "*b n n"], Float[Tensor, "*b"]]:
    r"""Factorise $A + jI = L L^\top$ with the smallest jitter $j$ of a bounded ladder that works.

    No jitter is added where none is needed, and each member of a batch gets its own.

    Args:
        matrix: Symmetric matrix $A$; only the lower triangle is read.
        name: What the matrix is, for the error message.

    Returns:
        The factor $L$, and the jitter $j$ that was added to the diagonal.

    Raises:
        NumericalError: If the matrix is not finite, or not positive definite within the bound.
    """
    factor, failed = torch.linalg.cholesky_ex(matrix)
    jitter = matrix.new_zeros(matrix.shape[:-2])
    # One look at the factor tells of both a failed pivot and a NaN that never met a comparison.
    if not failed.any() and torch.isfinite(factor.detach().sum()):
        return factor, jitter
    if not torch.isfinite(matrix.detach()).all():
        raise NumericalError(
            f"{name} has entries that are NaN or infinite, so it cannot be factorised. "
            "Check the scale of inputs, targets and hyperparameters for overflow."
        )
    scale = matrix.detach().diagonal(dim1=-2, dim2=-1).mean(-1).abs()
    for relative in _LADDER[matrix.dtype]:
        jitter = torch.where(failed > 0, relative * scale, jitter)
        factor, still_failed = torch.linalg.cholesky_ex(
            matrix + torch.diag_embed(jitter.unsqueeze(-1).expand(matrix.shape[:-1]))
        )
        if not still_failed.any():
            return factor, jitter
        failed = still_failed
    raise NumericalError(
        f"{name} is not positive definite, even with {jitter.max().item():.1e} added to its diagonal, the most that is "
        "allowed. Remove near-duplicate inputs, raise the noise variance, or use float64."
    )


def grow_cholesky(
    factor: Float[Tensor, "*b n n"],
    cross: Float[Tensor, "*c q n"],
    corner: Float[Tensor, "*c q q"],
    *,
    name: str = "the matrix",
) -> tuple[Float[Tensor, "*d n+q n+q"], Float[Tensor, "*e"]]:
    r"""Extend $A = L L^\top$ to the factor of $\begin{pmatrix} A & C^\top \\ C & D \end{pmatrix}$ in $O(n^2 q)$.

    Args:
        factor: The factor $L$.
        cross: The new rows $C$.
        corner: The new corner $D$.
        name: What the grown matrix is, for the error message.

    Returns:
        The grown factor, and the jitter that the Schur complement of $D$ needed.
    """
    below = solve_lower(factor, cross.mT).mT
    last, jitter = cholesky(corner - below @ below.mT, name=name)
    return extend_cholesky(factor, below, last), jitter


def extend_cholesky(
    factor: Float[Tensor, "*b n n"], below: Float[Tensor, "*c q n"], last: Float[Tensor, "*e q q"]
) -> Float[Tensor, "*f n+q n+q"]:
    """Put a factor together from its blocks, whose leading axes broadcast."""
    batch = broadcast_shapes(factor.shape[:-2], below.shape[:-2], last.shape[:-2])
    q, n = below.shape[-2:]
    top = torch.cat([factor, factor.new_zeros(*factor.shape[:-1], q)], dim=-1).expand(*batch, n, n + q)
    bottom = torch.cat([below.expand(*batch, q, n), last.expand(*batch, q, q)], dim=-1)
    return torch.cat([top, bottom], dim=-2)
