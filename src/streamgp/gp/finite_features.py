r"""Kernels of finite rank, $k(x, x') = \phi(x)^\top \phi(x')$, and the features that sums and products of them have."""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache, reduce
from itertools import combinations_with_replacement
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.gp.kernel_function import AbstractFeatureKernel
from streamgp.shapes import broadcast_shapes

__all__ = [
    "ConstantFeatures",
    "FourierFeatures",
    "JoinedFeatures",
    "LinearFeatures",
    "MultipliedFeatures",
    "PolynomialFeatures",
    "ScaledFeatures",
    "SelectedFeatures",
]


@final
@dataclass(frozen=True)
class LinearFeatures(AbstractFeatureKernel):
    r"""The kernel $x^\top V x'$ of linear functions, $V$ diagonal.

    Attributes:
        variance: The diagonal of $V$, or one number for all inputs.
    """

    variance: Float[Tensor, "*k 1 d"]

    def features(self, inputs: Tensor) -> Tensor:
        return inputs * self.variance.sqrt()


@final
@dataclass(frozen=True)
class ConstantFeatures(AbstractFeatureKernel):
    """The kernel of constants: one feature.

    Attributes:
        constant: Their variance.
    """

    constant: Float[Tensor, "*k"]

    def features(self, inputs: Tensor) -> Tensor:
        batch = broadcast_shapes(inputs.shape[:-2], self.constant.shape)
        return self.constant.sqrt()[..., None, None].expand(*batch, inputs.shape[-2], 1)


@final
@dataclass(frozen=True)
class PolynomialFeatures(AbstractFeatureKernel):
    r"""The kernel $(x^\top x' + c)^p$ of polynomials of degree $p$: $\binom{d + p}{p}$ monomials, weighted.

    Attributes:
        offset: $c$.
        power: $p$, a whole number.
    """

    offset: Float[Tensor, "*k"]
    power: int

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        return (first @ second.mT + self.offset[..., None, None]).pow(self.power)

    def diagonal(self, inputs: Tensor) -> Tensor:
        return (inputs.square().sum(-1) + self.offset.unsqueeze(-1)).pow(self.power)

    def features(self, inputs: Tensor) -> Tensor:
        batch = broadcast_shapes(inputs.shape[:-2], self.offset.shape)
        n, d = inputs.shape[-2:]
        root = self.offset.sqrt()[..., None, None].expand(*batch, n, 1)
        factors, weights = _monomials(d + 1, self.power)
        z = torch.cat([inputs.expand(*batch, n, d), root], dim=-1)
        columns = [z.index_select(-1, column.to(z.device)) for column in factors.unbind(-1)]
        return weights.to(z) * reduce(torch.mul, columns)


@cache
def _monomials(num_variables: int, power: int) -> tuple[Int[Tensor, "r p"], Float[Tensor, " r"]]:
    """The factors of each monomial, and the root of how often it comes up in the power of a sum."""
    factors = list(combinations_with_replacement(range(num_variables), power))
    counts = [
        math.factorial(power) / math.prod(math.factorial(count) for count in Counter(each).values()) for each in factors
    ]
    return torch.tensor(factors), torch.tensor(counts, dtype=torch.float64).sqrt()


@final
@dataclass(frozen=True)
class FourierFeatures(AbstractFeatureKernel):
    r"""Cosines and sines of given frequencies, $\sqrt{1/F} \, (\cos \omega^\top x, \sin \omega^\top x)$.

    Attributes:
        frequencies: $\omega$, one in each column.
    """

    frequencies: Float[Tensor, "*k d f"]

    def features(self, inputs: Tensor) -> Tensor:
        phase = inputs @ self.frequencies
        return torch.cat([phase.cos(), phase.sin()], dim=-1) / math.sqrt(self.frequencies.shape[-1])


@final
@dataclass(frozen=True)
class ScaledFeatures(AbstractFeatureKernel):
    """A kernel of finite rank times a variance.

    Attributes:
        base: The kernel.
        outputscale: The variance.
    """

    base: AbstractFeatureKernel
    outputscale: Float[Tensor, "*k"]

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        return self.outputscale[..., None, None] * self.base.matrix(first, second)

    def diagonal(self, inputs: Tensor) -> Tensor:
        return self.outputscale.unsqueeze(-1) * self.base.diagonal(inputs)

    def features(self, inputs: Tensor) -> Tensor:
        return self.outputscale.sqrt()[..., None, None] * self.base.features(inputs)


@final
@dataclass(frozen=True)
class SelectedFeatures(AbstractFeatureKernel):
    """A kernel of finite rank of some of the input dimensions.

    Attributes:
        base: The kernel.
        dims: Which dimensions it sees.
    """

    base: AbstractFeatureKernel
    dims: Int[Tensor, " k"]

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        return self.base.matrix(first.index_select(-1, self.dims), second.index_select(-1, self.dims))

    def diagonal(self, inputs: Tensor) -> Tensor:
        return self.base.diagonal(inputs.index_select(-1, self.dims))

    def features(self, inputs: Tensor) -> Tensor:
        return self.base.features(inputs.index_select(-1, self.dims))


@final
@dataclass(frozen=True)
class JoinedFeatures(AbstractFeatureKernel):
    """A sum of kernels of finite rank: the features of all of them.

    Attributes:
        parts: The kernels.
    """

    parts: tuple[AbstractFeatureKernel, ...]

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        return reduce(torch.add, [part.matrix(first, second) for part in self.parts])

    def diagonal(self, inputs: Tensor) -> Tensor:
        return reduce(torch.add, [part.diagonal(inputs) for part in self.parts])

    def features(self, inputs: Tensor) -> Tensor:
        each = [part.features(inputs) for part in self.parts]
        batch = broadcast_shapes(*(values.shape[:-2] for values in each))
        return torch.cat([values.expand(*batch, *values.shape[-2:]) for values in each], dim=-1)


@final
@dataclass(frozen=True)
class MultipliedFeatures(AbstractFeatureKernel):
    """A product of kernels of finite rank: all products of one feature of each.

    Attributes:
        parts: The kernels.
    """

    parts: tuple[AbstractFeatureKernel, ...]

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        return reduce(torch.mul, [part.matrix(first, second) for part in self.parts])

    def diagonal(self, inputs: Tensor) -> Tensor:
        return reduce(torch.mul, [part.diagonal(inputs) for part in self.parts])

    def features(self, inputs: Tensor) -> Tensor:
        return reduce(
            lambda one, other: (one.unsqueeze(-1) * other.unsqueeze(-2)).flatten(-2),
            [part.features(inputs) for part in self.parts],
        )
