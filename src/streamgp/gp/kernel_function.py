"""Kernels as functions of two sets of inputs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from jaxtyping import Float
from torch import Tensor

from streamgp.gp.jets import Jet, Moving, slopes_of

__all__ = ["AbstractFeatureKernel", "AbstractKernelFunction", "Normal", "all_features", "origin_of"]

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

    @abstractmethod
    def jet(self, first: Moving, second: Moving) -> Jet:
        """Evaluate all pairs of rows with their slopes along given directions.

        Raises:
            UnsupportedError: If slopes are not known.
        """

    @abstractmethod
    def random_features(
        self, points: Float[Tensor, "*b m d"], num_features: int, normal: Normal
    ) -> "AbstractFeatureKernel | None":
        """Draw a kernel of finite rank that is this one on average; None if that is not known.

        Args:
            points: Inputs, for their leading axes and dimension, and for where they are.
            num_features: How many frequencies to draw, where there are infinitely many.
            normal: Source of standard normal numbers.
        """


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

    def moving_features(self, moving: Moving) -> tuple[Float[Tensor, "*e n r"], Float[Tensor, "*e n r"] | None]:
        """The features of each row and their slopes along its direction, by forward mode."""
        return slopes_of(self.features, moving, f"A kernel of {type(self).__name__}")

    def jet(self, first: Moving, second: Moving) -> Jet:
        """Evaluate all pairs of rows with their slopes along given directions."""
        (phi, dphi), (psi, dpsi) = self.moving_features(first), self.moving_features(second)
        return Jet(
            phi @ psi.mT,
            0.0 if dphi is None else dphi @ psi.mT,
            0.0 if dpsi is None else phi @ dpsi.mT,
            0.0 if dphi is None or dpsi is None else dphi @ dpsi.mT,
        )

    def random_features(
        self, points: Float[Tensor, "*b m d"], num_features: int, normal: Normal
    ) -> "AbstractFeatureKernel | None":
        """The kernel itself: there is nothing to draw."""
        return self


def all_features(
    parts: Iterable[AbstractKernelFunction | None],
) -> tuple[AbstractFeatureKernel, ...] | None:
    """Return kernels if all of them are there and have finite rank, else None."""
    parts = tuple(parts)
    features = tuple(part for part in parts if isinstance(part, AbstractFeatureKernel))
    return features if len(features) == len(parts) else None


def origin_of(inputs: Float[Tensor, "*b n d"]) -> Float[Tensor, " d"]:
    """Find a point to subtract from inputs before a stationary kernel scales them, so that offsets cost no digits.

    In each dimension the point of the data that is closest to zero, or zero among them: no input loses more digits by
    the subtraction than its distance to the data has lost already, not even where another input is a fill value.
    """
    rows = inputs.detach().reshape(-1, inputs.shape[-1])
    if not len(rows):
        return rows.new_zeros(inputs.shape[-1])
    low, high = rows.aminmax(dim=0)
    return low.clamp_min(0.0) + high.clamp_max(0.0)
