"""GPyTorch kernels as functions of two sets of inputs: sums, products and parts fused, unknown ones by GPyTorch."""

import math
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import final

import torch
from gpytorch.kernels import (
    AdditiveKernel,
    ConstantKernel,
    CosineKernel,
    Kernel,
    LinearKernel,
    PeriodicKernel,
    PiecewisePolynomialKernel,
    PolynomialKernel,
    ProductKernel,
    RFFKernel,
    RQKernel,
    ScaleKernel,
)
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.gp.coregionalization import CoregionalizationKernel, CoregionalizedFeatures, CoregionalizedFunction
from streamgp.gp.finite_features import (
    ConstantFeatures,
    FourierFeatures,
    JoinedFeatures,
    LinearFeatures,
    MultipliedFeatures,
    PolynomialFeatures,
    ScaledFeatures,
    SelectedFeatures,
)
from streamgp.gp.interactions import InteractionKernel
from streamgp.gp.jets import Jet, Moving
from streamgp.gp.kernel_function import (
    AbstractFeatureKernel,
    AbstractKernelFunction,
    Normal,
    all_features,
    origin_of,
)
from streamgp.gp.module_slopes import module_jet
from streamgp.gp.spherical_linear import SphericalLinearKernel
from streamgp.gp.stationary import read_stationary

__all__ = ["CombinedKernel", "ModuleKernel", "ScaledKernel", "SelectedKernel", "read_kernel"]

# Kernels evaluated by GPyTorch that see their inputs through differences alone, so that both sets may be moved.
_MOVABLE = (CosineKernel, PeriodicKernel, PiecewisePolynomialKernel, RQKernel)


@final
@dataclass(frozen=True)
class SelectedKernel(AbstractKernelFunction):
    """A kernel of some of the input dimensions.

    Attributes:
        base: The kernel.
        dims: Which dimensions it sees.
    """

    base: AbstractKernelFunction
    dims: Int[Tensor, " k"]

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        return self.base.matrix(first.index_select(-1, self.dims), second.index_select(-1, self.dims))

    def diagonal(self, inputs: Tensor) -> Tensor:
        return self.base.diagonal(inputs.index_select(-1, self.dims))

    def jet(self, first: Moving, second: Moving) -> Jet:
        return self.base.jet(self._selected(first), self._selected(second))

    def _selected(self, moving: Moving) -> Moving:
        x, v = moving
        return Moving(x.index_select(-1, self.dims), None if v is None else v.index_select(-1, self.dims))

    def random_features(self, points: Tensor, num_features: int, normal: Normal) -> SelectedFeatures | None:
        base = self.base.random_features(points.index_select(-1, self.dims), num_features, normal)
        return None if base is None else SelectedFeatures(base, self.dims)


@final
@dataclass(frozen=True)
class ScaledKernel(AbstractKernelFunction):
    """A kernel times a variance.

    Attributes:
        base: The kernel.
        outputscale: The variance.
    """

    base: AbstractKernelFunction
    outputscale: Float[Tensor, "*k"]

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        return self.outputscale[..., None, None] * self.base.matrix(first, second)

    def diagonal(self, inputs: Tensor) -> Tensor:
        return self.outputscale.unsqueeze(-1) * self.base.diagonal(inputs)

    def jet(self, first: Moving, second: Moving) -> Jet:
        return self.base.jet(first, second) * self.outputscale[..., None, None]

    def random_features(self, points: Tensor, num_features: int, normal: Normal) -> ScaledFeatures | None:
        base = self.base.random_features(points, num_features, normal)
        return None if base is None else ScaledFeatures(base, self.outputscale)


@final
@dataclass(frozen=True)
class CombinedKernel(AbstractKernelFunction):
    """The sum or the product of kernels.

    Attributes:
        parts: The kernels.
        is_product: Whether they are multiplied.
    """

    parts: tuple[AbstractKernelFunction, ...]
    is_product: bool

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        return self._combine([part.matrix(first, second) for part in self.parts])

    def diagonal(self, inputs: Tensor) -> Tensor:
        return self._combine([part.diagonal(inputs) for part in self.parts])

    def jet(self, first: Moving, second: Moving) -> Jet:
        return reduce(mul if self.is_product else add, [part.jet(first, second) for part in self.parts])

    def random_features(self, points: Tensor, num_features: int, normal: Normal) -> JoinedFeatures | None:
        if self.is_product:  # of two numbers of features that are large already
            return None
        parts = all_features(part.random_features(points, num_features, normal) for part in self.parts)
        return None if parts is None else JoinedFeatures(parts)

    def _combine(self, values: list[Tensor]) -> Tensor:
        return reduce(mul if self.is_product else add, values)


@final
@dataclass(frozen=True)
class ModuleKernel(AbstractKernelFunction):
    """Any GPyTorch kernel, evaluated by GPyTorch."""

    module: Kernel

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        if _is_movable(self.module):
            origin = origin_of(second)
            first, second = first - origin, second - origin
        K = self.module(first, second).to_dense()
        return K if math.isfinite(float(K.detach().sum())) else self._limit(first, second, K)

    def diagonal(self, inputs: Tensor) -> Tensor:
        return self.module(inputs, diag=True)

    def jet(self, first: Moving, second: Moving) -> Jet:
        return module_jet(self.module, first, second)

    def random_features(self, points: Tensor, num_features: int, normal: Normal) -> None:
        return None

    def _limit(self, first: Tensor, second: Tensor, K: Tensor) -> Tensor:
        """Give values that overflowed to NaN their limit: far inputs have nothing in common, unless they are equal."""
        if not torch.isnan(K.detach()).any():
            return K
        # Evaluated without the far rows, so that neither their neighbors nor a gradient meet what is not a number.
        far_first, far_second = self._is_far(first), self._is_far(second)
        near_first = torch.where(far_first, torch.zeros_like(first), first)
        near_second = torch.where(far_second, torch.zeros_like(second), second)
        is_equal = (first.unsqueeze(-2) == second.unsqueeze(-3)).all(-1)
        limit = torch.where(is_equal, self.diagonal(near_first).detach().unsqueeze(-1), 0.0)
        return torch.where(far_first | far_second.mT, limit, self.module(near_first, near_second).to_dense())

    def _is_far(self, inputs: Tensor) -> Tensor:
        """Rows that make NaN of covariances with zero, each on its own: GPyTorch moves all of a set by their mean."""
        zero = torch.zeros_like(inputs[..., :1, :])
        with torch.no_grad():
            pairs = (torch.cat([row, zero], dim=-2) for row in inputs.split(1, dim=-2))
            return torch.stack([self.module(pair, zero).to_dense().isnan().any() for pair in pairs]).unsqueeze(-1)


def _is_movable(kernel: Kernel) -> bool:
    # With active dimensions, a scaled kernel is evaluated as a whole.
    return type(kernel.base_kernel if type(kernel) is ScaleKernel else kernel) in _MOVABLE


def read_kernel(kernel: Kernel) -> AbstractKernelFunction:
    """Read a GPyTorch kernel, keeping its hyperparameters attached to any gradient they carry."""
    function = _read_known(kernel)
    if function is None:
        return ModuleKernel(kernel)
    if kernel.active_dims is None:
        return function
    if isinstance(function, AbstractFeatureKernel):
        return SelectedFeatures(function, kernel.active_dims)
    return SelectedKernel(function, kernel.active_dims)


def _read_known(kernel: Kernel) -> AbstractKernelFunction | None:
    """Read a kernel of inputs that are selected already; None if GPyTorch has to evaluate it."""
    if type(kernel) is ScaleKernel:
        # GPyTorch selects the base's active dimensions in the ScaleKernel, which has them too.
        fused = read_stationary(kernel.base_kernel, kernel.outputscale)
        if fused is not None:
            return fused
        base = _read_known(kernel.base_kernel)
        if base is None and kernel.base_kernel.active_dims is None:
            base = ModuleKernel(kernel.base_kernel)
        if isinstance(base, AbstractFeatureKernel):
            return ScaledFeatures(base, kernel.outputscale)
        return None if base is None else ScaledKernel(base, kernel.outputscale)
    if type(kernel) in (AdditiveKernel, ProductKernel):
        return _combined(tuple(map(read_kernel, kernel.kernels)), is_product=type(kernel) is ProductKernel)
    if type(kernel) is CoregionalizationKernel:
        parts = tuple(map(read_kernel, kernel.kernels))
        features = all_features(parts)
        if features is not None:
            return CoregionalizedFeatures(features, kernel.mixing)
        return CoregionalizedFunction(parts, kernel.mixing)
    if type(kernel) in (InteractionKernel, SphericalLinearKernel):
        return kernel.function()
    return _read_features(kernel) or read_stationary(kernel, None)


def _read_features(kernel: Kernel) -> AbstractFeatureKernel | None:
    """Read a kernel of GPyTorch that has finite rank."""
    if type(kernel) is LinearKernel:
        return LinearFeatures(kernel.variance)
    if type(kernel) is ConstantKernel:
        return ConstantFeatures(kernel.constant.squeeze(-1))
    if type(kernel) is PolynomialKernel and kernel.power == int(kernel.power) and kernel.power >= 1:
        return PolynomialFeatures(kernel.offset.squeeze(-1), int(kernel.power))
    if type(kernel) is RFFKernel and "randn_weights" in kernel._buffers:  # else drawn at the first call, by GPyTorch
        return FourierFeatures(kernel.randn_weights / kernel.lengthscale.mT)
    return None


def _combined(parts: tuple[AbstractKernelFunction, ...], *, is_product: bool) -> AbstractKernelFunction:
    """The sum or the product of kernels, of finite rank if all of them are."""
    features = all_features(parts)
    if features is None:
        return CombinedKernel(parts, is_product)
    return MultipliedFeatures(features) if is_product else JoinedFeatures(features)
