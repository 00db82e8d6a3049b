"""Triangular solves and products that share one factor between all leading axes."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["apply", "solve_lower", "solve_lower_transpose", "solve_vector"]


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
