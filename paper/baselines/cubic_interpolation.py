"""Cubic interpolation between the values on a regular grid over the unit square."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.checks import keep_count
from streamgp.errors import ValueRangeError

__all__ = ["Grid", "Weights"]


@final
@dataclass(frozen=True, eq=False)
class Weights:
    """A sparse matrix of interpolation, 16 entries in each row.

    Attributes:
        columns: Which grid points each row reads.
        values: Their weights.
        num_columns: Number of grid points.
    """

    columns: Int[Tensor, "n 16"]
    values: Float[Tensor, "n 16"]
    num_columns: int

    def take(self, index: int) -> "Weights":
        """One row, as a matrix."""
        return Weights(self.columns[index : index + 1], self.values[index : index + 1], self.num_columns)

    def apply(self, vector: Float[Tensor, " r"]) -> Float[Tensor, " n"]:
        r"""Compute $W v$."""
        return (self.values * vector[self.columns]).sum(-1)

    def rows_of(self, matrix: Float[Tensor, "r r"]) -> Float[Tensor, "n r"]:
        r"""Compute $W S$."""
        return torch.einsum("nk,nkr->nr", self.values, matrix[self.columns])

    def quadratic(self, matrix: Float[Tensor, "r r"]) -> Float[Tensor, " n"]:
        r"""Compute the diagonal of $W S W^\top$."""
        block = matrix[self.columns.unsqueeze(-1), self.columns.unsqueeze(-2)]
        return torch.einsum("nk,nkl,nl->n", self.values, block, self.values)

    def gather(self, weights: Float[Tensor, " n"]) -> Float[Tensor, " r"]:
        r"""Compute $W^\top v$."""
        result = weights.new_zeros(self.num_columns)
        return result.index_add(0, self.columns.flatten(), (weights.unsqueeze(-1) * self.values).flatten())

    def gram(self, weights: Float[Tensor, " n"]) -> Float[Tensor, "r r"]:
        r"""Compute $W^\top \operatorname{diag}(v) W$."""
        places = self.columns.unsqueeze(-1) * self.num_columns + self.columns.unsqueeze(-2)
        products = (self.values * weights.unsqueeze(-1)).unsqueeze(-1) * self.values.unsqueeze(-2)
        result = weights.new_zeros(self.num_columns**2).index_add(0, places.flatten(), products.flatten())
        return result.unflatten(0, (self.num_columns, self.num_columns))


@final
@dataclass(frozen=True)
class Grid:
    """A square grid that reaches one step beyond the unit square on each side, so that every input has 16 neighbors.

    Attributes:
        size: Number of grid points along each side.
    """

    size: int

    def __post_init__(self) -> None:
        keep_count(self, "size", minimum=4)

    @property
    def num_points(self) -> int:
        """Number of grid points."""
        return self.size**2

    def points(self, *, like: Tensor) -> Float[Tensor, "r 2"]:
        """Places of the grid points, the second coordinate running fastest."""
        side = (torch.arange(self.size, dtype=like.dtype, device=like.device) - 1.0) / (self.size - 3)
        return torch.cartesian_prod(side, side)

    def weights(self, X: Float[Tensor, "n 2"]) -> Weights:
        """Weights that interpolate at inputs of the unit square.

        Raises:
            ValueRangeError: If an input lies outside.
        """
        if X.numel() and not bool(((X >= 0.0) & (X <= 1.0)).all()):
            raise ValueRangeError(
                f"X must lie in the unit square, but reaches from {X.min().item():.3g} to {X.max().item():.3g}. "
                "Scale the inputs to [0, 1]."
            )
        steps = X * (self.size - 3) + 1.0
        # The last cell takes its upper end, too.
        cell = steps.floor().clamp(max=self.size - 3)
        near = cell.long().unsqueeze(-1) + torch.arange(-1, 3, device=X.device)  # (n, 2, 4)
        one = _convolution_weights(steps - cell)
        columns = near[:, 0].unsqueeze(-1) * self.size + near[:, 1].unsqueeze(-2)
        values = one[:, 0].unsqueeze(-1) * one[:, 1].unsqueeze(-2)
        return Weights(columns.flatten(-2), values.flatten(-2), self.num_points)


def _convolution_weights(t: Float[Tensor, "n 2"]) -> Float[Tensor, "n 2 4"]:
    r"""Weights of the neighbors at $-1, 0, 1, 2$ for a place $t \in [0, 1]$; exact for quadratic functions.

    References:
        Keys (1981), Cubic convolution interpolation for digital image processing.
    """
    before = -0.5 * t + t**2 - 0.5 * t**3
    left = 1.0 - 2.5 * t**2 + 1.5 * t**3
    right = 0.5 * t + 2.0 * t**2 - 1.5 * t**3
    after = -0.5 * t**2 + 0.5 * t**3
    return torch.stack([before, left, right, after], -1)
