"""Cholesky factors whose jitter is bounded and reported, and products and solves that share one of them."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.errors import NumericalError
from streamgp.shapes import broadcast_shapes

__all__ = [
    "apply",
    "cholesky",
    "extend_cholesky",
    "factorize",
    "solve_lower",
    "solve_lower_transpose",
    "solve_vector",
]

# The jitter tried, relative to the mean of the diagonal. Rounding alone perturbs the eigenvalues of an
# n x n matrix by about n units in the last place, so the ladder starts there, and ends where the
# perturbation would show in the predictions.
_LADDER = {
    torch.float64: (1e-14, 1e-12, 1e-10, 1e-8, 1e-6),
    torch.float32: (1e-6, 1e-5, 1e-4, 1e-3),
}
# A pivot that is left of something larger carries the rounding of that. Relative to it, this is the least pivot that
# is still known to about a hundredth, with rounding of a few dozen units in the last place.
_LEAST_PIVOT = {torch.float64: 5e-13, torch.float32: 5e-6}


def cholesky(
    matrix: Float[Tensor, "*b n n"], *, scale: Float[Tensor, "*c n"] | None = None, name: str = "the matrix"
) -> tuple[Float[Tensor, "*b n n"], Float[Tensor, "*b"]]:
    r"""Factorize $A + jI = L L^\top$ with the smallest jitter $j$ of a bounded ladder that works.

    No jitter is added where none is needed, and each member of a batch gets its own.

    Args:
        matrix: Symmetric matrix $A$; only the lower triangle is read.
        scale: For a matrix that is what was left by a subtraction, the diagonal of what was subtracted from. Its
            rounding is the error of $A$, so a pivot of that size is not trusted, and jitter is relative to it: rows in
            different units get $j$ in their own.
        name: What the matrix is, for the error message.

    Returns:
        The factor $L$, and the jitter $j$ that was added to the diagonal; of rows of different scale, to that of a row
        of average scale.

    Raises:
        NumericalError: If the matrix is not finite, or not positive definite within the bound.
    """
    factor, is_trusted = factorize(matrix, scale)
    jitter = matrix.new_zeros(matrix.shape[:-2])
    if is_trusted is None:
        return factor, jitter
    if not torch.isfinite(matrix.detach()).all():
        raise NumericalError(
            f"{name} has entries that are NaN or infinite, so it cannot be factorized.",
            advice="Check the scale of inputs, targets and hyperparameters for overflow.",
        )
    unit = (matrix.diagonal(dim1=-2, dim2=-1) if scale is None else scale).detach().mean(-1).abs().expand_as(jitter)
    share = _shares(matrix, scale)
    for relative in _LADDER[matrix.dtype]:
        if scale is not None and relative < _LEAST_PIVOT[matrix.dtype]:
            continue
        jitter = torch.where(is_trusted, jitter, relative * unit)
        factor, trusted_now = factorize(
            matrix + torch.diag_embed((jitter.unsqueeze(-1) * share).expand(matrix.shape[:-1])), scale
        )
        if trusted_now is None:
            return factor, jitter
        is_trusted = trusted_now
    raise NumericalError(
        f"{name} is not positive definite, even with {jitter.max().item():.1e} added to its diagonal, the most that is "
        "allowed.",
        advice="Remove near-duplicate inputs, raise the noise variance, or use float64.",
    )


def _shares(matrix: Tensor, scale: Tensor | None) -> Tensor:
    """The scale of each row relative to the average; one where it is nothing, for jitter has to be something."""
    if scale is None:
        return matrix.new_ones(())
    share = scale.detach() / scale.detach().mean(-1, keepdim=True)
    return torch.where(share > torch.finfo(share.dtype).eps, share, 1.0)


def factorize(
    matrix: Float[Tensor, "*b n n"], scale: Float[Tensor, "*c n"] | None = None
) -> tuple[Float[Tensor, "*b n n"], Bool[Tensor, "*b"] | None]:
    """Factorize without jitter, and say which members of a batch can be trusted; None if all can.

    Args:
        matrix: Symmetric matrix; only the lower triangle is read.
        scale: The diagonal of what the matrix is left of, against which its pivots are judged; None for no judgement.
    """
    factor, failed = torch.linalg.cholesky_ex(matrix)
    pivots = factor.detach().diagonal(dim1=-2, dim2=-1)
    # What is not finite anywhere makes a pivot so, and not every NaN meets a comparison.
    is_finite = not failed.any() and math.isfinite(float(pivots.sum()))
    if is_finite and (scale is None or bool((pivots.square() > _LEAST_PIVOT[matrix.dtype] * scale).all())):
        return factor, None
    is_trusted = failed == 0
    if scale is not None:
        is_trusted = is_trusted & (pivots.square() > _LEAST_PIVOT[matrix.dtype] * scale).all(-1)
    return factor, is_trusted


def extend_cholesky(
    factor: Float[Tensor, "*b n n"], below: Float[Tensor, "*c q n"], last: Float[Tensor, "*e q q"]
) -> Float[Tensor, "*f n+q n+q"]:
    """Put a factor together from its blocks, whose leading axes broadcast."""
    batch = broadcast_shapes(factor.shape[:-2], below.shape[:-2], last.shape[:-2])
    q, n = below.shape[-2:]
    top = torch.cat([factor, factor.new_zeros(*factor.shape[:-1], q)], dim=-1).expand(*batch, n, n + q)
    bottom = torch.cat([below.expand(*batch, q, n), last.expand(*batch, q, q)], dim=-1)
    return torch.cat([top, bottom], dim=-2)


def solve_lower(factor: Float[Tensor, "*b n n"], right: Float[Tensor, "*c n k"]) -> Float[Tensor, "*d n k"]:
    r"""Solve $L X = B$ for lower triangular $L$."""
    return _solve(factor, right, is_transposed=False)


def solve_lower_transpose(factor: Float[Tensor, "*b n n"], right: Float[Tensor, "*c n k"]) -> Float[Tensor, "*d n k"]:
    r"""Solve $L^\top X = B$ for lower triangular $L$."""
    return _solve(factor, right, is_transposed=True)


def solve_vector(
    factor: Float[Tensor, "*b n n"], right: Float[Tensor, "*c n"], *, is_transposed: bool = False
) -> Float[Tensor, "*d n"]:
    r"""Solve $L x = b$, or $L^\top x = b$, for vectors with more leading axes than $L$.

    The extra axes become columns of one solve, so that all fantasies share the factor.
    """
    columns, extra = _to_columns(right, factor.dim() - 2)
    return _from_columns(_solve(factor, columns, is_transposed=is_transposed), extra)


def apply(matrix: Float[Tensor, "*b m n"], vector: Float[Tensor, "*c n"]) -> Float[Tensor, "*d m"]:
    r"""Compute $M v$ for vectors with more leading axes than $M$, as one product."""
    if vector.dim() < matrix.dim():
        return (matrix @ vector.unsqueeze(-1)).squeeze(-1)
    columns, extra = _to_columns(vector, matrix.dim() - 2)
    return _from_columns(matrix @ columns, extra)


def _solve(factor: Tensor, right: Tensor, *, is_transposed: bool) -> Tensor:
    # Leading axes that the factor lacks become columns of one solve; broadcasting would copy the factor instead.
    num_extra = right.dim() - factor.dim()
    if num_extra > 0:
        extra, k = right.shape[:num_extra], right.shape[-1]
        columns = right.reshape(math.prod(extra), *right.shape[num_extra:]).movedim(0, -2).flatten(-2)
        solved = _solve(factor, columns, is_transposed=is_transposed)
        return solved.unflatten(-1, (math.prod(extra), k)).movedim(-2, 0).reshape(*extra, *solved.shape[:-1], k)
    if is_transposed:
        return torch.linalg.solve_triangular(factor.mT, right, upper=True)
    return torch.linalg.solve_triangular(factor, right, upper=False)


def _to_columns(vector: Tensor, num_batch: int) -> tuple[Tensor, torch.Size]:
    """Move the leading axes beyond `num_batch` of a `(*s, *b, n)` vector into columns: `(*b, n, prod(s))`."""
    num_extra = max(vector.dim() - 1 - num_batch, 0)
    extra = vector.shape[:num_extra]
    return vector.reshape(math.prod(extra), *vector.shape[num_extra:]).movedim(0, -1), extra


def _from_columns(columns: Tensor, extra: torch.Size) -> Tensor:
    """Undo `_to_columns`."""
    return columns.movedim(-1, 0).reshape(*extra, *columns.shape[:-1])
