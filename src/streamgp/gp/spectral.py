"""Kernels of differences of inputs, whose frequencies can be drawn."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.gp.kernel_function import AbstractFeatureKernel, AbstractKernelFunction, Normal, origin_of

__all__ = ["AbstractSpectralKernel", "RandomFourierFeatures"]


class AbstractSpectralKernel(AbstractKernelFunction):
    r"""A kernel $\sigma^2 \, \mathbb E[\cos \omega^\top (x - x')]$ of inputs by their differences alone."""

    lengthscale: Float[Tensor, "*k 1 d"]
    outputscale: Float[Tensor, "*j"]

    @abstractmethod
    def frequencies(self, shape: tuple[int, ...], normal: Normal) -> Float[Tensor, "*b f d"]:
        r"""Draw $\omega$.

        Args:
            shape: Leading axes, number of frequencies, and of dimensions.
            normal: Source of standard normal numbers.
        """

    def random_features(
        self, points: Float[Tensor, "*b m d"], num_features: int, normal: Normal
    ) -> "RandomFourierFeatures":
        """Draw frequencies; covariances have an error of order one over the root of their number."""
        frequencies = self.frequencies((*points.shape[:-2], num_features, points.shape[-1]), normal)
        return RandomFourierFeatures(frequencies, origin_of(points), (self.outputscale / num_features).sqrt())


@final
@dataclass(frozen=True)
class RandomFourierFeatures(AbstractFeatureKernel):
    r"""Cosines and sines $a \, (\cos \omega^\top (x - c), \sin \omega^\top (x - c))$ of drawn frequencies.

    Attributes:
        frequencies: $\omega$, in the units of the inputs.
        origin: $c$, near the data, so that offsets cost no digits.
        amplitude: $a$.
    """

    frequencies: Float[Tensor, "*b f d"]
    origin: Float[Tensor, " d"]
    amplitude: Float[Tensor, "*k"]

    def features(self, inputs: Tensor) -> Tensor:
        phase = (inputs - self.origin) @ self.frequencies.mT
        # In place: for many inputs, taking fresh memory costs more than the arithmetic.
        return torch.cat([phase.cos(), phase.sin()], dim=-1).mul_(self.amplitude[..., None, None])
