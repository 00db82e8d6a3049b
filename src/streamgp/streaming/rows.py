"""Observations on their way from a stream to the model."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_finite, check_targets
from streamgp.errors import ShapeError
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["Rows", "likelihood_of", "read_inputs", "read_rows"]


class Rows(NamedTuple):
    """Observations in the order of their arrival.

    Attributes:
        inputs: One row for each observation.
        targets: What was observed, a line for each output.
        total_count: Numbers of trials of binomial observations; None for others.
    """

    inputs: Float[Tensor, "n d"]
    targets: Float[Tensor, "c n"]
    total_count: Float[Tensor, " n"] | None = None

    @property
    def num_rows(self) -> int:
        """Number of observations."""
        return self.targets.shape[-1]

    def part(self, start: int, stop: int) -> "Rows":
        """Some of the rows, as a copy: a view would keep all of the others in memory."""
        total_count = None if self.total_count is None else self.total_count[start:stop].clone()
        return Rows(self.inputs[start:stop].clone(), self.targets[:, start:stop].clone(), total_count)

    def thinned(self, most: int) -> "Rows":
        """At most so many rows, evenly spread, with the last one."""
        n = self.num_rows
        if n <= most:
            return self
        kept = n - 1 - torch.arange(most - 1, -1, -1) * n // most
        return Rows(
            self.inputs[kept], self.targets[:, kept], None if self.total_count is None else self.total_count[kept]
        )

    def append(self, later: "Rows") -> "Rows":
        """These rows and then others."""
        total_count = None
        if self.total_count is not None and later.total_count is not None:
            total_count = torch.cat([self.total_count, later.total_count])
        return Rows(torch.cat([self.inputs, later.inputs]), torch.cat([self.targets, later.targets], -1), total_count)


def read_rows(
    X: Tensor, y: Tensor, total_count: Tensor | None, *, num_dims: int | None, num_outputs: int | None
) -> Rows:
    """Check inputs, targets and numbers of trials, and convert them to double precision.

    Args:
        X: Inputs `(n, d)`.
        y: Targets `(n,)`, or `(n, c)` for several outputs.
        total_count: Numbers of trials `(n,)`, or None.
        num_dims: Number of input columns so far; None before the first rows.
        num_outputs: Number of outputs so far, zero for targets without an axis for them; None before the first rows.
    """
    X = read_inputs(X, num_dims=num_dims)
    y = torch.as_tensor(y, dtype=torch.float64)
    if y.dim() not in (1, 2) or (num_outputs is not None and y.shape[1:] != torch.Size([num_outputs][:num_outputs])):
        wanted = f"({len(X)}, {num_outputs})" if num_outputs else f"({len(X)},)"
        raise ShapeError(f"y must have shape {wanted}, one value for each row of X, but has shape {tuple(y.shape)}.")
    columns = y.unsqueeze(0) if y.dim() == 1 else y.mT
    columns = check_targets(columns, X)
    if total_count is not None:
        total_count = torch.as_tensor(total_count, dtype=torch.float64)
        if total_count.dim() == 0:
            total_count = total_count.expand(len(X)).clone()
        total_count = check_finite(check_targets(total_count, X, name="total_count"), "total_count")
    return Rows(X, columns, total_count)


def read_inputs(X: Tensor, *, num_dims: int | None) -> Float[Tensor, "n d"]:
    """Check inputs, and convert them to double precision."""
    X = torch.as_tensor(X, dtype=torch.float64)
    if X.dim() != 2 or not X.shape[-1]:
        raise ShapeError(
            f"X must have shape (n, d), one row for each observation, but has shape {tuple(X.shape)}. "
            "For a single observation use X.reshape(1, -1)."
        )
    if num_dims is not None and X.shape[-1] != num_dims:
        raise ShapeError(
            f"X has {X.shape[-1]} columns, but the stream so far had {num_dims}. "
            "Pass the same columns in the same order every time."
        )
    return check_finite(X, "X")


def likelihood_of(likelihood: AbstractLikelihood, total_count: Tensor | None) -> AbstractLikelihood:
    """The likelihood of some rows: with their own numbers of trials, if they have any."""
    return likelihood if likelihood.row_data is None else likelihood.with_row_data(total_count)
