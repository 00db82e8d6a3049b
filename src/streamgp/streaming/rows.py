"""Observations on their way from a stream to the model."""

from dataclasses import dataclass, fields
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_finite, check_targets
from streamgp.errors import ShapeError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.streaming.growing import GrowingArrays
from streamgp.tables.values import LARGEST

__all__ = ["Rows", "likelihood_of", "read_inputs", "read_rows"]


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Observations in the order of their arrival; a frozen value.

    In NumPy, which for single rows takes a third of the time of torch.

    Attributes:
        inputs: One row for each observation.
        targets: What was observed, a line for each output.
        total_count: Numbers of trials of binomial observations; None for others.
    """

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, "c n"]
    total_count: Float[np.ndarray, " n"] | None = None

    @property
    def num_rows(self) -> int:
        """Number of observations."""
        return self.targets.shape[-1]

    @property
    def tensors(self) -> tuple[Float[Tensor, "n d"], Float[Tensor, "c n"]]:
        """Inputs and targets, for fits."""
        return torch.from_numpy(self.inputs), torch.from_numpy(np.ascontiguousarray(self.targets))

    def part(self, start: int, stop: int) -> "Rows":
        """Some of the rows, as a view: it keeps all of the others in memory."""
        total_count = None if self.total_count is None else self.total_count[start:stop]
        return Rows(self.inputs[start:stop], self.targets[:, start:stop], total_count)

    def copy(self) -> "Rows":
        """The same with memory of its own."""
        total_count = None if self.total_count is None else self.total_count.copy()
        return Rows(self.inputs.copy(), self.targets.copy(), total_count)

    def thinned(self, most: int) -> "Rows":
        """At most so many rows, evenly spread, with the last one."""
        n = self.num_rows
        if n <= most:
            return self
        kept = n - 1 - np.arange(most - 1, -1, -1) * n // most
        return Rows(
            self.inputs[kept], self.targets[:, kept], None if self.total_count is None else self.total_count[kept]
        )

    def append(self, later: "Rows") -> "Rows":
        """These rows and then others, with memory of their own; rows that are appended one by one share it."""
        memory: GrowingArrays | None = self.__dict__.get("_memory")
        if memory is None or not memory.extend(self.num_rows, later._columns):
            memory = GrowingArrays(self._columns, later._columns)
        inputs, targets, *counts = memory.first(self.num_rows + later.num_rows)
        rows = Rows(inputs, targets.T, counts[0] if counts else None)
        rows.__dict__["_memory"] = memory
        return rows

    @property
    def _columns(self) -> list[np.ndarray]:
        """All arrays, with observations on the first axis."""
        return [self.inputs, self.targets.T, *([] if self.total_count is None else [self.total_count])]

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not the memory for later rows."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def read_rows(X: Any, y: Any, total_count: Any, *, num_dims: int | None, num_outputs: int | None) -> Rows:
    """Check inputs, targets and numbers of trials, and convert them to double precision; they may be views.

    Args:
        X: Inputs `(n, d)`.
        y: Targets `(n,)`, or `(n, c)` for several outputs.
        total_count: Numbers of trials `(n,)`, or None.
        num_dims: Number of input columns so far; None before the first rows.
        num_outputs: Number of outputs so far, zero for targets without an axis for them; None before the first rows.
    """
    X, y = read_inputs(X, num_dims=num_dims), _to_array(y)
    if y.ndim not in (1, 2) or (num_outputs is not None and y.shape[1:] != (num_outputs,)[:num_outputs]):
        wanted = f"({len(X)}, {num_outputs})" if num_outputs else f"({len(X)},)"
        raise ShapeError(f"y must have shape {wanted}, one value for each row of X, but has shape {y.shape}.")
    columns = y[None] if y.ndim == 1 else y.T
    if columns.shape[-1] != len(X) or not np.isfinite(columns).all():
        check_targets(torch.from_numpy(columns), torch.from_numpy(X))
    for name, values in (("X", X), ("y", y)):
        if (np.abs(values) > LARGEST).any():
            raise ValueRangeError(
                f"{name} holds {values.flat[np.abs(values).argmax()]:g}, and numbers beyond {LARGEST:g} cannot be "
                "learned from. Leave out such rows, or take logarithms."
            )
    if total_count is not None:
        counts = torch.as_tensor(total_count, dtype=torch.float64)
        if counts.dim() == 0:
            counts = counts.expand(len(X)).clone()
        inputs = torch.from_numpy(X)
        total_count = check_finite(check_targets(counts, inputs, name="total_count"), "total_count").numpy()
    return Rows(X, columns, total_count)


def read_inputs(X: Any, *, num_dims: int | None) -> Float[np.ndarray, "n d"]:
    """Check inputs, and convert them to double precision; they may be a view."""
    X = _to_array(X)
    if X.ndim != 2 or not X.shape[-1]:
        raise ShapeError(
            f"X must have shape (n, d), one row for each observation, but has shape {X.shape}. "
            "For a single observation use X.reshape(1, -1)."
        )
    if num_dims is not None and X.shape[-1] != num_dims:
        raise ShapeError(
            f"X has {X.shape[-1]} columns, but the stream so far had {num_dims}. "
            "Pass the same columns in the same order every time."
        )
    if not np.isfinite(X).all():
        check_finite(torch.from_numpy(X), "X")
    return X


def _to_array(values: Any) -> np.ndarray:
    """What torch reads as a tensor of double precision, as an array."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        # A single row may count as contiguous with strides that torch does not take.
        return values if values.flags.c_contiguous and min(values.strides, default=0) >= 0 else values.copy()
    return torch.as_tensor(values, dtype=torch.float64).detach().contiguous().numpy()


def likelihood_of(likelihood: AbstractLikelihood, total_count: np.ndarray | Tensor | None) -> AbstractLikelihood:
    """The likelihood of some rows: with their own numbers of trials, if they have any."""
    if likelihood.row_data is None:
        return likelihood
    return likelihood.with_row_data(None if total_count is None else torch.as_tensor(total_count))
