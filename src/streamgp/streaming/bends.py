"""Input columns with long tails, bent so that a stream can be learned along them."""

from dataclasses import dataclass, field
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Bends"]

# A column has long tails if its standard deviation is so many times the median distance from its median: 1.5 for
# normal values, 2.1 for exponential ones, 3.6 for the exponentials of standard normal values.
_LONG_TAILED = 3.5
# Fewer rows do not show it.
_LEAST_ROWS = 8


@final
@dataclass(frozen=True, eq=False)
class Bends:
    r"""Which columns are bent, $x \mapsto \sinh^{-1}((x - c) / s)$: straight around their middle, logarithmic far away.

    Amounts, durations or concentrations often span several powers of ten. In standardized units nearly all of them lie
    at one place and a few far out, where a kernel with one lengthscale cannot follow.

    Attributes:
        columns: Numbers of the columns.
        center: Their medians $c$.
        scale: Their median distances from these, $s$.
        is_kept: Whether they stand as they are, too, after all columns: a trend may be linear in them.
    """

    columns: tuple[int, ...] = ()
    center: Float[Tensor, " k"] = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))
    scale: Float[Tensor, " k"] = field(default_factory=lambda: torch.ones(0, dtype=torch.float64))
    is_kept: bool = False

    @classmethod
    def of(cls, X: Float[Tensor, "n d"], *, is_kept: bool) -> "Bends":
        """What the tails of columns ask for."""
        if len(X) < _LEAST_ROWS:
            return cls()
        x = X.numpy()
        center = np.median(x, 0)
        distance = np.abs(x - center)
        # Many rows may have one value, such as zero where nothing happened; constant columns are never bent.
        distance[distance == 0.0] = np.nan
        is_varied = ~np.isnan(distance).all(0)
        scale = np.ones_like(center)
        scale[is_varied] = np.nanmedian(distance[:, is_varied], 0)
        columns = np.flatnonzero(x.std(0) > _LONG_TAILED * scale)
        return cls(
            tuple(columns.tolist()), torch.from_numpy(center[columns]), torch.from_numpy(scale[columns]), is_kept
        )

    def bend(self, x: np.ndarray) -> np.ndarray:
        """Inputs `(n, d)` with these columns bent, and perhaps as they were at the end."""
        if not self.columns:
            return x
        index = list(self.columns)
        raw = x[:, index]
        bent = np.concatenate([x, raw], -1) if self.is_kept else x.copy()
        bent[:, index] = np.arcsinh((raw - self.center.numpy()) / self.scale.numpy())
        return bent

    def straighten(self, x: Float[Tensor, "n k"]) -> Float[Tensor, "n d"]:
        """The inputs that were bent."""
        if not self.columns:
            return x
        index = list(self.columns)
        straight = x[:, : x.shape[-1] - len(index)].clone() if self.is_kept else x.clone()
        straight[:, index] = self.center + self.scale * torch.sinh(x[:, index])
        return straight

    def slopes(self, num_dims: int) -> Float[Tensor, " d"]:
        """By how much columns are stretched where they are straight: what a small length becomes, for a length of one.

        Args:
            num_dims: Number of columns before they are bent.
        """
        slopes = torch.ones(num_dims, dtype=torch.float64)
        slopes[list(self.columns)] = 1.0 / self.scale
        return slopes
