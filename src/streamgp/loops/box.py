"""The box that is searched: the user's units outside, the unit cube inside."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_finite, to_double
from streamgp.errors import ArgumentTypeError, ShapeError, ValueRangeError
from streamgp.loops.cube_space import AbstractCubeSpace
from streamgp.storage import register

__all__ = ["Box"]

# How far outside the box a point may lie, relative to its width, and still be taken for one on its edge: rounding.
_ROUNDING = 1e-6


@register
@final
@dataclass(frozen=True, eq=False)
class Box(AbstractCubeSpace):
    """A product of intervals.

    Attributes:
        lower: Lower ends.
        upper: Upper ends.
    """

    lower: Float[Tensor, " d"]
    upper: Float[Tensor, " d"]

    @classmethod
    def from_bounds(cls, bounds: Any) -> "Box":
        """Read bounds: a tensor `(2, d)`, as BoTorch has it, or a list or an array of pairs `(lower, upper)`."""
        if isinstance(bounds, np.ndarray):
            # SciPy's arrays of bounds have pairs in their rows; one with two rows of another length is BoTorch's.
            is_botorch = bounds.ndim == 2 and bounds.shape[0] == 2 != bounds.shape[1]
            bounds = to_double(bounds, "bounds") if is_botorch else bounds.tolist()
        if isinstance(bounds, Tensor):
            ends = to_double(bounds, "bounds")
            wanted = "(2, d), lower ends in the first row and upper ends in the second"
            is_right = ends.dim() == 2 and ends.shape[0] == 2 and ends.shape[1] > 0
        elif isinstance(bounds, Sequence) and not isinstance(bounds, str):
            ends = to_double(bounds, "bounds")
            wanted = "(d, 2), as a list has one pair (lower, upper) for each dimension"
            is_right = ends.dim() == 2 and ends.shape[1] == 2
            ends = ends.mT if is_right else ends
        else:
            raise ArgumentTypeError(
                f"bounds must be a torch.Tensor (2, d) or a list of pairs (lower, upper), but is a "
                f"{type(bounds).__name__}. Write [(0.0, 1.0), (10.0, 20.0)] for two dimensions; "
                "spaces of parameters with names are searched by streamgp.Optimizer."
            )
        if not is_right:
            raise ShapeError(f"bounds must have shape {wanted}, but has shape {tuple(ends.shape)}.")
        is_open = ~ends.isfinite().all(0)
        if is_open.any():
            j = int(is_open.nonzero()[0])
            raise ValueRangeError(
                f"bounds must be finite, but dimension {j} goes from {ends[0, j].item():g} to {ends[1, j].item():g}. "
                "Give the range in which points can be set; it may be wide, or of the logarithm."
            )
        is_empty = ends[0] >= ends[1]
        if is_empty.any():
            j = int(is_empty.nonzero()[0])
            raise ValueRangeError(
                f"Every lower bound must be below its upper bound, but dimension {j} goes from {ends[0, j].item():g} "
                f"to {ends[1, j].item():g}."
            )
        is_wide = torch.isinf(ends[1] - ends[0])
        if is_wide.any():
            j = int(is_wide.nonzero()[0])
            raise ValueRangeError(
                f"The distance of the bounds of dimension {j}, {ends[0, j].item():g} and {ends[1, j].item():g}, "
                "overflows. Use closer ones, or search over the logarithm."
            )
        return cls(ends[0].clone(), ends[1].clone())

    @property
    def num_dims(self) -> int:
        """Number of dimensions."""
        return len(self.lower)

    def show(self, points: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Take points of the unit cube to the user's units; never past the bounds by rounding."""
        return torch.clamp(self.lower + points * (self.upper - self.lower), self.lower, self.upper)

    def read(self, X: Any, name: str = "X") -> Float[Tensor, "n d"]:
        """Check points in the user's units, and take them to the unit cube; a single point may be a row of numbers."""
        points = to_double(X, name)
        points = points.unsqueeze(0) if points.shape == self.lower.shape else points
        if points.dim() != 2 or points.shape[-1] != self.num_dims:
            raise ShapeError(
                f"{name} must have shape (n, {self.num_dims}), one row for each point, but has shape "
                f"{tuple(points.shape)}."
            )
        check_finite(points, name)
        unit = (points - self.lower) / (self.upper - self.lower)
        is_outside = (unit < -_ROUNDING) | (unit > 1.0 + _ROUNDING)
        if is_outside.any():
            i, j = is_outside.nonzero()[0].tolist()
            raise ValueRangeError(
                f"{name} must lie within the bounds, but row {i} has {points[i, j].item():g} in dimension {j}, which "
                f"goes from {self.lower[j].item():g} to {self.upper[j].item():g}. Leave such points out, or make the "
                "optimizer with wider bounds."
            )
        return unit.clamp(0.0, 1.0)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The dimensions by number."""
        return tuple(f"x{j}" for j in range(self.num_dims))
