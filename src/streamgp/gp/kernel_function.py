"""Kernels as functions of two sets of inputs."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

__all__ = ["AbstractFeatureKernel", "AbstractKernelFunction", "AbstractSpectralKernel", "Normal", "origin_of"]

# Standard normal numbers of a shape.
Normal = Callable[..., Tensor]


class AbstractKernelFunction(ABC):
    """A kernel with its hyperparameters, ready to be evaluated."""

    @abstractmethod
    def matrix(self, first: Float[Tensor, "*b n d"], second: Float[Tensor, "*c m d"]) -> Float[Tensor, "*e n m"]:
        """Evaluate all pairs of rows."""

    @abstractmethod
    def diagonal(self, inputs: Float[Tensor, "*b n d"]) -> Float[Tensor, "*e n"]:
        """Evaluate each row with itself."""


class AbstractFeatureKernel(AbstractKernelFunction):
    r"""A kernel of finite rank, $k(x, x') = \phi(x)^\top \phi(x')$."""

    @abstractmethod
    def features(self, inputs: Float[Tensor, "*b n d"]) -> Float[Tensor, "*e n r"]:
        r"""The features $\phi$ of each row."""

    def matrix(self, first: Float[Tensor, "*b n d"], second: Float[Tensor, "*c m d"]) -> Float[Tensor, "*e n m"]:
        """Evaluate all pairs of rows."""
        return self.features(first) @ self.features(second).mT

    def diagonal(self, inputs: Float[Tensor, "*b n d"]) -> Float[Tensor, "*e n"]:
        """Evaluate each row with itself."""
        return self.features(inputs).square().sum(-1)


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


def origin_of(inputs: Float[Tensor, "*b n d"]) -> Float[Tensor, " d"]:
    """What a stationary kernel moves all inputs by before it scales them, so that offsets cost no digits.

    In each dimension the point of the data that is closest to zero, or zero among them: no input loses more digits by
    the subtraction than its distance to the data has lost already, not even where another input is a fill value.
    """
    rows = inputs.detach().reshape(-1, inputs.shape[-1])
    if not len(rows):
        return rows.new_zeros(inputs.shape[-1])
    low, high = rows.aminmax(dim=0)
    return low.clamp_min(0.0) + high.clamp_max(0.0)
