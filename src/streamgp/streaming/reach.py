"""How far predictions go beyond what was seen."""

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Reach"]


@final
@dataclass(frozen=True, eq=False)
class Reach:
    """The range of the inputs so far, in the user's units, and a margin on both sides of it.

    Inputs beyond are predicted as if they were at its edge: a linear trend is not drawn out to a slip of the pen, nor
    from two rows that nearly agree in an input. What has been learned there is in reach from then on, and a stream that
    moves on takes its reach along.

    Attributes:
        lower: Least value of each input so far.
        upper: Largest value.
        margin: How far predictions go beyond it on each side, in units of the width of the range.
    """

    lower: Float[Tensor, " d"]
    upper: Float[Tensor, " d"]
    margin: float = math.inf

    @classmethod
    def of(cls, X: Float[np.ndarray, "n d"], *, margin: float) -> "Reach":
        """Of these inputs.

        Args:
            X: The inputs.
            margin: See above.
        """
        return cls(torch.from_numpy(X.min(0)), torch.from_numpy(X.max(0)), margin)

    @cached_property
    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        return self.lower.numpy(), self.upper.numpy()

    @cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = self._range
        margin = self.margin * (upper - lower)
        return lower - margin, upper + margin

    def limit(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Inputs within reach; the same object, if all of them are."""
        if self.margin == math.inf or _is_within(X, *self._edges):
            return X
        return np.clip(X, *self._edges)

    def extended(self, X: Float[np.ndarray, "n d"]) -> "Reach":
        """After more inputs; the same object, if they are within the range."""
        if _is_within(X, *self._range):
            return self
        return self.joined(Reach.of(X, margin=self.margin))

    def joined(self, other: "Reach") -> "Reach":
        """Of the inputs of both."""
        lower, upper = torch.minimum(self.lower, other.lower), torch.maximum(self.upper, other.upper)
        return Reach(lower, upper, self.margin)

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not what was derived from the rest."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def _is_within(X: np.ndarray, least: np.ndarray, most: np.ndarray) -> bool:
    return bool(((least <= X) & (most >= X)).all())
