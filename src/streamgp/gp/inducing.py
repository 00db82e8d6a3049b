r"""Inducing variables $u$, which a sparse belief is about, jointly Gaussian with the function $f$.

The seam between sparse posteriors and what they are sparse in. A `SparseProcess`, and all that is built on it, needs
of its inducing variables their covariance $K_{uu}$, that with function values, and, to move, that with other inducing
variables. There are three cases:

- values at points, $u = f(Z)$;
- latent groups, $u = (g_1(Z_1), \dots)$ of outputs that mix latent functions: points of a kernel that is defined for
  latent functions too (`CoregionalizationKernel`), so that `InducingPoints` serves them as they are;
- the weights of finitely many features, $f(x) = \mu(x) + \phi(x)^\top u$, $K_{uu} = I$, with which nothing is lost.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.errors import UnsupportedError
from streamgp.evidence import Evidence, join
from streamgp.gp.functionals import evaluate_rows, row_features
from streamgp.gp.kernel_function import AbstractFeatureKernel, AbstractKernelFunction
from streamgp.shapes import broadcast_shapes

__all__ = ["AbstractInducing", "FeatureWeights", "InducingPoints", "inducing_variables"]

# The covariance of two sets of inputs or evidence.
Covariance = Callable[[Tensor | Evidence, Tensor | Evidence], Tensor]
# Places at which functions are compared, for each feature.
_PROBES_OF_FEATURE = 4


class AbstractInducing(ABC):
    """Inducing variables under a kernel: linear functionals of the function less its mean."""

    @property
    @abstractmethod
    def num_variables(self) -> int:
        """Number of variables."""

    @property
    @abstractmethod
    def is_movable(self) -> bool:
        """True if others may take their places, as new inputs may those of points."""

    @abstractmethod
    def covariance(self) -> Float[Tensor, "*b m m"]:
        """Their covariance, without jitter."""

    @abstractmethod
    def jitter(self, relative: float) -> Float[Tensor, ""]:
        """Jitter that their covariance needs to be factorized, given a share of it that rounding can see."""

    @abstractmethod
    def cross(self, X: Float[Tensor, "*b n d"] | Evidence) -> Float[Tensor, "*c m n"]:
        """Their covariance with function values at inputs, or with rows of evidence."""

    @abstractmethod
    def crossed(
        self, X: Float[Tensor, "*b n d"] | Evidence, also: Tensor | Evidence | None = None
    ) -> Float[Tensor, "*c n k"]:
        """The covariance of function values at inputs with them, and with values at further inputs."""

    @abstractmethod
    def apply(self, functions: Callable[[Tensor], Tensor]) -> Float[Tensor, "*c k m"]:
        """Evaluate them for given functions: from values `(*c, k, n)` at inputs `(*b, n, d)` to values `(*c, k, m)`."""

    @abstractmethod
    def matches(self, other: "AbstractInducing") -> Bool[Tensor, "*b m k"]:
        """Matrix of which variables equal which of others under the same kernel."""

    def between(self, other: "AbstractInducing") -> Float[Tensor, "*c m k"]:
        """Their covariance with other inducing variables, which may have come from another kernel."""
        return other.apply(self.cross)


@final
@dataclass(frozen=True, eq=False)
class InducingPoints(AbstractInducing):
    r"""Values $f(Z)$.

    Attributes:
        points: $Z$.
        kernel: The kernel.
        evaluate: Its matrix of two sets of inputs.
    """

    points: Float[Tensor, "*b m d"]
    kernel: AbstractKernelFunction
    evaluate: Covariance

    @property
    def num_variables(self) -> int:
        return self.points.shape[-2]

    @property
    def is_movable(self) -> bool:
        return True

    def covariance(self) -> Tensor:
        return self.evaluate(self.points, self.points)

    def jitter(self, relative: float) -> Tensor:
        return relative * self.kernel.diagonal(self.points).mean()

    def cross(self, X: Tensor | Evidence) -> Tensor:
        return self.evaluate(self.points, X)

    def crossed(self, X: Tensor | Evidence, also: Tensor | Evidence | None = None) -> Tensor:
        return self.evaluate(X, self.points if also is None else join(self.points, also))

    def apply(self, functions: Callable[[Tensor], Tensor]) -> Tensor:
        return functions(self.points)

    def matches(self, other: AbstractInducing) -> Tensor:
        if not isinstance(other, InducingPoints):
            shape = (*self.points.shape[:-1], other.num_variables)
            return torch.zeros(shape, dtype=torch.bool, device=self.points.device)
        return (self.points.unsqueeze(-2) == other.points.unsqueeze(-3)).all(-1)


@final
@dataclass(frozen=True, eq=False)
class FeatureWeights(AbstractInducing):
    r"""The weights $w$ of the features of a kernel of finite rank, $f(x) = \mu(x) + \phi(x)^\top w$.

    Attributes:
        none: No points, with the leading axes, dimension, dtype and device of the inputs.
        kernel: The kernel.
        evaluate: Its matrix of two sets of inputs.
    """

    none: Float[Tensor, "*b 0 d"]
    kernel: AbstractFeatureKernel
    evaluate: Covariance

    @property
    def num_variables(self) -> int:
        return self.kernel.features(self.none).shape[-1]

    @property
    def is_movable(self) -> bool:
        return False

    def covariance(self) -> Tensor:
        features = self.kernel.features(self.none)
        r = features.shape[-1]
        batch = broadcast_shapes(self.none.shape[:-2], features.shape[:-2])
        return torch.eye(r, dtype=self.none.dtype, device=self.none.device).expand(*batch, r, r)

    def jitter(self, relative: float) -> Tensor:
        return self.none.new_zeros(())

    def cross(self, X: Tensor | Evidence) -> Tensor:
        return self._features(X).mT

    def _features(self, X: Tensor | Evidence) -> Tensor:
        return row_features(self.kernel, X) if isinstance(X, Evidence) else self.kernel.features(X)

    def crossed(self, X: Tensor | Evidence, also: Tensor | Evidence | None = None) -> Tensor:
        features = self._features(X)
        return features if also is None else torch.cat([features, self.evaluate(X, also)], dim=-1)

    def apply(self, functions: Callable[[Tensor], Tensor]) -> Tensor:
        """The weights with which the features make the functions, found at inputs enough to tell features apart."""
        num_probes, d = _PROBES_OF_FEATURE * self.num_variables, self.none.shape[-1]
        rng = torch.Generator().manual_seed(0)
        probes = torch.randn(num_probes, d, generator=rng, dtype=torch.float64).to(self.none)
        values, features = functions(probes).double(), self.kernel.features(probes).double()
        eps = torch.finfo(self.none.dtype).eps
        weights = values @ torch.linalg.pinv(features, rtol=num_probes * eps).mT
        if bool(((values - weights @ features.mT).abs() > eps**0.5 * values.abs().amax()).any()):
            raise UnsupportedError(
                "The belief is about the weights of features, but there are functions under the changed kernel or mean "
                "that these features cannot make, as after a change of lengthscales. Change variances, offsets and "
                "scales only, or start again from the prior with the new kernel."
            )
        return weights.to(self.none)

    def matches(self, other: AbstractInducing) -> Tensor:
        r, is_same = self.num_variables, isinstance(other, FeatureWeights)
        eye = torch.eye(r, other.num_variables, dtype=torch.bool, device=self.none.device)
        return (eye if is_same else torch.zeros_like(eye)).expand(*self.none.shape[:-2], r, other.num_variables)


def inducing_variables(
    points: Float[Tensor, "*b m d"], kernel: AbstractKernelFunction, evaluate: Covariance | None = None
) -> AbstractInducing:
    """The values at points, or, where there are none, the weights of the kernel's features.

    Args:
        points: Inducing points.
        kernel: The kernel.
        evaluate: Its matrix of two sets of inputs, if there is a faster way than that of the kernel itself.
    """
    if points.shape[-2]:
        return InducingPoints(points, kernel, evaluate or partial(evaluate_rows, kernel))
    if not isinstance(kernel, AbstractFeatureKernel):
        raise UnsupportedError(
            "Without inducing points, the kernel must have finitely many features: a LinearKernel, PolynomialKernel, "
            "ConstantKernel, RFFKernel with num_dims, or spherical-linear kernel, or scales, sums and products of "
            "these. Pass inducing points for any other."
        )
    return FeatureWeights(points, kernel, evaluate or partial(evaluate_rows, kernel))
