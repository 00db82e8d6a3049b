"""Anderson acceleration of a fixed-point iteration."""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Anderson"]

# Steps that are remembered, and the singular values, relative to the largest, that are dropped as rounding.
_MEMORY, _RANK = 8, 1e-10


class Anderson:
    r"""Extrapolates from the last steps of $x \leftarrow F(x)$ to where the residual $F(x) - x$ would vanish.

    The residual is taken as linear in $x$ between the last points. Where the iteration contracts slowly along a few
    directions, as that of a softmax along equal shifts of all latent functions, this replaces hundreds of steps.

    References:
        Walker, Ni (2011), Anderson acceleration for fixed-point iterations.
    """

    def __init__(self) -> None:
        """Start without memory."""
        self._points: list[Tensor] = []
        self._residuals: list[Tensor] = []

    def propose(
        self, x: Float[Tensor, "..."], residual: Float[Tensor, "..."], weight: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        """The next point.

        Args:
            x: The point at hand.
            residual: $F(x) - x$ there.
            weight: Of each entry of the residual in its norm, which gives all entries one unit.
        """
        self._points = [*self._points, x][-_MEMORY:]
        self._residuals = [*self._residuals, residual][-_MEMORY:]
        if len(self._points) == 1:
            return x + residual
        steps = torch.stack([x - each for each in self._points[:-1]])
        changes = torch.stack([residual - each for each in self._residuals[:-1]])
        matrix = (changes * weight).flatten(1).double().mT
        target = (residual * weight).flatten().double()
        U, S, V = torch.linalg.svd(matrix, full_matrices=False)
        inverse = torch.where(_RANK * S[0] < S, S.reciprocal(), 0.0)
        mix = (V.mT @ (inverse * (U.mT @ target))).to(x)
        return x + residual - torch.tensordot(mix, steps + changes, dims=1)

    def forget(self) -> None:
        """Start again, after a step that did not help."""
        self._points, self._residuals = [], []
