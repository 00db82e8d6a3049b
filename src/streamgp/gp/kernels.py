"""Kernels as functions of two sets of inputs: the common stationary ones fused, all others through GPyTorch."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from jaxtyping import Float
from torch import Tensor

from streamgp.shapes import broadcast_shapes

__all__ = ["AbstractKernelFunction", "ModuleKernel", "StationaryKernel", "read_kernel"]

# Maps distances, in units of the lengthscale, to k(r) and to its slope k'(r) / r. Without gradients it may use up r.
Profile = Callable[[Tensor], tuple[Tensor, Tensor]]


class AbstractKernelFunction(ABC):
    """A kernel with its hyperparameters, ready to be evaluated."""

    @abstractmethod
    def matrix(self, first: Float[Tensor, "*b n d"], second: Float[Tensor, "*c m d"]) -> Float[Tensor, "*e n m"]:
        """Evaluate all pairs of rows."""

    @abstractmethod
    def diagonal(self, inputs: Float[Tensor, "*b n d"]) -> Float[Tensor, "*e n"]:
        """Evaluate each row with itself."""


@final
@dataclass(frozen=True)
class StationaryKernel(AbstractKernelFunction):
    r"""A kernel $\sigma^2 k(\lVert (x - x') / \ell \rVert)$, evaluated in one fused step with its gradient.

    Attributes:
        profile: The function $k$ of distance.
        lengthscale: Lengthscales $\ell$, one or one for each dimension.
        outputscale: Variance $\sigma^2$.
        smoothness: The Matérn $\nu$ that tells how frequencies are drawn; infinite for the squared exponential.
    """

    profile: Profile
    lengthscale: Float[Tensor, "*k 1 d"]
    outputscale: Float[Tensor, "*k"]
    smoothness: float

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        amplitude = self.outputscale[..., None, None]
        if not _is_tracked(first, second, self.lengthscale, self.outputscale):
            # The bookkeeping of a gradient takes longer than one row of the matrix.
            with torch.no_grad():
                value, _ = self.profile(_distance(first, second, self.lengthscale))
                return value * amplitude if amplitude.dim() > 2 else value.mul_(amplitude)
        fused: Any = _FusedStationary  # torch leaves `apply` untyped
        return fused.apply(first, second, self.lengthscale, amplitude, self.profile)

    def diagonal(self, inputs: Tensor) -> Tensor:
        shape = broadcast_shapes(inputs.shape[:-1], (*self.outputscale.shape, 1))
        return self.outputscale.unsqueeze(-1).expand(shape)


@final
@dataclass(frozen=True)
class ModuleKernel(AbstractKernelFunction):
    """Any GPyTorch kernel, evaluated by GPyTorch."""

    module: Kernel

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        return self.module(first, second).to_dense()

    def diagonal(self, inputs: Tensor) -> Tensor:
        return self.module(inputs, diag=True)


def read_kernel(kernel: Kernel) -> AbstractKernelFunction:
    """Read a GPyTorch kernel, keeping its hyperparameters attached to any gradient they carry."""
    base, outputscale = kernel, None
    if type(kernel) is ScaleKernel and kernel.active_dims is None:
        base, outputscale = kernel.base_kernel, kernel.outputscale
    profiles: dict[float, Profile] = {0.5: _matern_half, 1.5: _matern_three_halves, 2.5: _matern_five_halves}
    if base.active_dims is not None or type(base) not in (RBFKernel, MaternKernel):
        return ModuleKernel(kernel)
    smoothness = base.nu if type(base) is MaternKernel else math.inf
    profile = profiles.get(smoothness, _squared_exponential)
    lengthscale = base.lengthscale
    if outputscale is None:
        outputscale = torch.ones(lengthscale.shape[:-2], dtype=lengthscale.dtype, device=lengthscale.device)
    return StationaryKernel(profile, lengthscale, outputscale, smoothness)


def _squared_exponential(r: Tensor) -> tuple[Tensor, Tensor]:
    k = torch.exp(-0.5 * r.square())
    return k, -k


def _matern_half(r: Tensor) -> tuple[Tensor, Tensor]:
    k = torch.exp(-r)
    # The kink at zero has no gradient; zero is the symmetric choice.
    return k, torch.where(r > 0, -k / torch.where(r > 0, r, 1.0), 0.0)


def _matern_three_halves(r: Tensor) -> tuple[Tensor, Tensor]:
    s = math.sqrt(3) * r
    e = s.neg().exp_()
    return torch.addcmul(e, s, e), -3 * e


def _matern_five_halves(r: Tensor) -> tuple[Tensor, Tensor]:
    if torch.is_grad_enabled():
        s = math.sqrt(5) * r
        e = s.neg().exp_()
        t = torch.addcmul(e, s, e)
        return torch.addcmul(t, s.square(), e, value=1 / 3), (-5 / 3) * t
    # The same in the memory of three matrices: for large ones, taking fresh memory costs more than the arithmetic.
    s = r.mul_(math.sqrt(5))
    e = s.neg().exp_()
    t = torch.addcmul(e, s, e)
    value = e.mul_(s).mul_(s).mul_(1 / 3).add_(t)
    return value, t.mul_(-5 / 3)


def _is_tracked(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _distance(x: Tensor, z: Tensor, lengthscale: Tensor) -> Tensor:
    return torch.cdist(x / lengthscale, z / lengthscale, compute_mode="donot_use_mm_for_euclid_dist")


class _FusedStationary(torch.autograd.Function):
    r"""Value of a stationary kernel, with a gradient that costs one matrix product.

    With $h_{ij} = g_{ij} k'(r_{ij}) / r_{ij}$, the gradient in $x_i$ is $\sum_j h_{ij} (x_i - z_j) / \ell^2$: finite at
    coinciding points, and no intermediate of the forward pass is kept but the slope.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, z: Tensor, lengthscale: Tensor, amplitude: Tensor, profile: Profile) -> Tensor:
        value, slope = profile(_distance(x, z, lengthscale))
        ctx.profile = profile
        needs_value = ctx.needs_input_grad[3]
        ctx.save_for_backward(x, z, lengthscale, amplitude, slope, value if needs_value else None)
        return value * amplitude if needs_value or amplitude.dim() > 2 else value.mul_(amplitude)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grad_outputs
        raw_x, raw_z, lengthscale, amplitude, slope, value = ctx.saved_tensors
        x, z = raw_x / lengthscale, raw_z / lengthscale
        if torch.is_grad_enabled():  # a second derivative was asked for: make the slope a function of x and z
            value, slope = ctx.profile(_differentiable_distance(x, z))
        needs_x, needs_z, needs_lengthscale, needs_amplitude, _ = ctx.needs_input_grad
        h = g * slope
        grad_x: Any = None
        grad_z: Any = None
        grad_lengthscale = grad_amplitude = None
        if needs_x or needs_lengthscale:
            grad_x = amplitude * (h.sum(-1, keepdim=True) * x - h @ z) / lengthscale
        if needs_z or needs_lengthscale:
            grad_z = amplitude * (h.sum(-2).unsqueeze(-1) * z - h.mT @ x) / lengthscale
        if needs_lengthscale:
            grad_lengthscale = -_sum_rows(grad_x * x, lengthscale) - _sum_rows(grad_z * z, lengthscale)
        if needs_amplitude:
            grad_amplitude = (g * value).sum_to_size(amplitude.shape)
        return (
            grad_x.sum_to_size(raw_x.shape) if needs_x else None,
            grad_z.sum_to_size(raw_z.shape) if needs_z else None,
            grad_lengthscale,
            grad_amplitude,
            None,
        )


def _sum_rows(values: Tensor, lengthscale: Tensor) -> Tensor:
    return values.sum(-2, keepdim=True).sum_to_size(lengthscale.shape)


def _differentiable_distance(x: Tensor, z: Tensor) -> Tensor:
    squared = (x.unsqueeze(-2) - z.unsqueeze(-3)).square().sum(-1)
    # The square root has no derivative at zero, where the gradient in x and z does not depend on it.
    return torch.where(squared > 0, squared.clamp_min(torch.finfo(x.dtype).tiny).sqrt(), 0.0)
