"""The common stationary kernels, evaluated in one fused step with their gradient."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from jaxtyping import Float
from torch import Tensor

from streamgp.gp.jets import Jet, Moving, difference, no_slopes
from streamgp.gp.kernel_function import Normal, origin_of
from streamgp.gp.spectral import AbstractSpectralKernel
from streamgp.shapes import broadcast_shapes

__all__ = ["StationaryKernel", "read_stationary"]

# Maps scaled distances s = c r, with r in units of the lengthscale, to k(s) and to its slope k'(s) / s. Without
# gradients it may use up s.
Profile = Callable[[Tensor], tuple[Tensor, Tensor]]

# Beyond this scaled distance a kernel is zero in every precision, and its polynomial factors are still finite.
_FAR = 1e4
# From as many dimensions on, squared distances are faster by products, |x|^2 + |z|^2 - 2 x z. As long as the first two
# terms are no larger than this, that costs no digits of a kernel that is smooth in them.
_MANY_DIMS = 20
_MOST_CENTRAL = 16.0
# Up to as many lengthscales from zero, scaling before subtracting costs no more than the kernel's own rounding.
_NEAR = 32.0
_norm = torch.linalg.vector_norm


@final
@dataclass(frozen=True)
class StationaryKernel(AbstractSpectralKernel):
    r"""A kernel $\sigma^2 k(\lVert (x - x') / \ell \rVert)$, evaluated in one fused step with its gradient.

    Attributes:
        profile: The function $k$ of distance, itself times `factor`.
        lengthscale: Lengthscales $\ell$, one or one for each dimension.
        outputscale: Variance $\sigma^2$.
        smoothness: The Matérn $\nu$ that tells how frequencies are drawn; infinite for the squared exponential.
    """

    profile: Profile
    lengthscale: Float[Tensor, "*k 1 d"]
    outputscale: Float[Tensor, "*j"]
    smoothness: float

    @classmethod
    def matern(cls, smoothness: float, lengthscale: Tensor, outputscale: Tensor) -> "StationaryKernel":
        """A Matérn kernel of a half, three or five halves; the squared exponential for an infinite smoothness."""
        profiles: dict[float, Profile] = {
            0.5: _matern_half,
            1.5: _matern_three_halves,
            2.5: _matern_five_halves,
            math.inf: _squared_exponential,
        }
        return cls(profiles[smoothness], lengthscale, outputscale, smoothness)

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        amplitude = self._amplitude
        if not _is_tracked(first, second, self.lengthscale, self.outputscale):
            # The bookkeeping of a gradient takes longer than one row of the matrix.
            if first.dim() == second.dim() == self.lengthscale.dim() == amplitude.dim() == 2:
                if second.shape[-2] == 1:
                    return self._column(first, second).mul_(amplitude)
                if first.shape[-2] == 1:
                    return self._column(second, first).mul_(amplitude).mT
            is_near = self._is_near(first, second)
            x, z = _scaled(first, second, self.lengthscale, is_near=is_near)
            value = self._value(_distance(x, z, self.factor, is_near=is_near, is_smooth=self._is_smooth))
            return value * amplitude if amplitude.dim() > 2 else value.mul_(amplitude)
        fused: Any = _FusedStationary  # torch leaves `apply` untyped
        how = self.profile, self.factor, self._is_near(first, second), self._is_smooth
        return fused.apply(first, second, self.lengthscale, amplitude, how)

    @cached_property
    def _amplitude(self) -> Float[Tensor, "*j 1 1"]:
        return self.outputscale[..., None, None]

    def _column(self, first: Float[Tensor, "n d"], second: Float[Tensor, "1 d"]) -> Float[Tensor, "n 1"]:
        """The profile at the distances to one point, subtracted before divided: a stream asks for one at a time."""
        s = torch.linalg.vector_norm((first - second).div_(self.lengthscale), dim=-1, keepdim=True)
        return self._value(s.mul_(self.factor).clamp_max_(_FAR))

    def _value(self, s: Tensor) -> Tensor:
        """The profile alone; uses up the scaled distances."""
        alone = _ALONE.get(self.profile)
        return self.profile(s)[0] if alone is None else alone(s)

    @cached_property
    def factor(self) -> float:
        """Factor of distances before the profile sees them."""
        return math.sqrt(2.0 * self.smoothness) if math.isfinite(self.smoothness) else 1.0

    @cached_property
    def _is_smooth(self) -> bool:
        """True if the kernel is a smooth function of squared distances, so that it keeps their digits near zero."""
        return self.smoothness > 0.5

    def _is_near(self, first: Tensor, second: Tensor) -> bool:
        """Tell if all inputs are within so few lengthscales of zero that nothing overflows and no digits are lost."""
        if not (first.numel() and second.numel()):
            return True
        return sum(float(_norm(inputs.detach(), math.inf)) for inputs in (first, second)) <= self._near

    @cached_property
    def _near(self) -> float:
        return _NEAR * float(self.lengthscale.detach().min())

    def diagonal(self, inputs: Tensor) -> Tensor:
        shape = broadcast_shapes(inputs.shape[:-1], (*self.outputscale.shape, 1))
        return self.outputscale.unsqueeze(-1).expand(shape)

    def jet(self, first: Moving, second: Moving) -> Jet:
        r"""Evaluate a function of $q = s^2$: with $g = k' / s$ and $h = g' / s$, $k_q = g / 2$ and $k_{qq} = h / 4$."""
        if not self._is_smooth:
            raise no_slopes("A Matérn-1/2 kernel (an exponential one) has functions without derivatives")
        apart = difference(first, second, self.lengthscale / self.factor)
        q = (apart * apart).sum()
        # The square root has no derivative at zero, where that of a smooth kernel does not depend on it.
        s = torch.where(q.value > 0, q.value.clamp_min(torch.finfo(q.value.dtype).tiny).sqrt(), 0.0).clamp_max(_FAR)
        value, slope, curvature = _CURVED[self.profile](s)
        return q.through(value, 0.5 * slope, 0.25 * curvature) * self._amplitude

    def frequencies(self, shape: tuple[int, ...], normal: Normal) -> Float[Tensor, "*b f d"]:
        frequencies = normal(*shape) / self.lengthscale
        if not math.isfinite(self.smoothness):
            return frequencies
        # The spectral density of a Matérn kernel is a Student-t with 2 nu degrees of freedom.
        degrees = round(2 * self.smoothness)
        chi_squared = normal(*shape[:-1], degrees).square().sum(-1, keepdim=True)
        return frequencies * (degrees / chi_squared).sqrt()


def read_stationary(base: Kernel, outputscale: Tensor | None) -> StationaryKernel | None:
    """Read a Matérn or squared-exponential kernel, whatever its active dimensions; None for any other."""
    if type(base) not in (RBFKernel, MaternKernel):
        return None
    smoothness = base.nu if type(base) is MaternKernel else math.inf
    lengthscale = base.lengthscale
    if outputscale is None:
        outputscale = torch.ones(lengthscale.shape[:-2], dtype=lengthscale.dtype, device=lengthscale.device)
    return StationaryKernel.matern(smoothness, lengthscale, outputscale)


def _squared_exponential(s: Tensor) -> tuple[Tensor, Tensor]:
    k = torch.exp(-0.5 * s.square())
    return k, -k


def _matern_half(s: Tensor) -> tuple[Tensor, Tensor]:
    k = torch.exp(-s)
    # The kink at zero has no gradient; zero is the symmetric choice.
    return k, torch.where(s > 0, -k / torch.where(s > 0, s, 1.0), 0.0)


def _matern_three_halves(s: Tensor) -> tuple[Tensor, Tensor]:
    e = s.neg().exp_()
    return torch.addcmul(e, s, e), -e


def _matern_five_halves(s: Tensor) -> tuple[Tensor, Tensor]:
    e = s.neg().exp_()
    t = torch.addcmul(e, s, e)
    if torch.is_grad_enabled():
        return torch.addcmul(t, s.square(), e, value=1 / 3), (-1 / 3) * t
    # The same in the memory of three matrices: for large ones, taking fresh memory costs more than the arithmetic.
    value = torch.add(t, e.mul_(s.square_()), alpha=1 / 3, out=e)
    return value, t.mul_(-1 / 3)


def _squared_exponential_alone(s: Tensor) -> Tensor:
    return s.square_().mul_(-0.5).exp_()


def _matern_half_alone(s: Tensor) -> Tensor:
    return s.neg_().exp_()


def _matern_three_halves_alone(s: Tensor) -> Tensor:
    e = s.neg().exp_()
    return torch.addcmul(e, s, e)


def _matern_five_halves_alone(s: Tensor) -> Tensor:
    e = s.neg().exp_()
    return torch.addcmul(e, s, e).addcmul_(s.square_(), e, value=1 / 3)


# Values without slopes, in fewer steps and less memory.
_ALONE: dict[Profile, Callable[[Tensor], Tensor]] = {
    _squared_exponential: _squared_exponential_alone,
    _matern_half: _matern_half_alone,
    _matern_three_halves: _matern_three_halves_alone,
    _matern_five_halves: _matern_five_halves_alone,
}


def _squared_exponential_curved(s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    k = torch.exp(-0.5 * s.square())
    return k, -k, k


def _matern_three_halves_curved(s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    e = torch.exp(-s)
    # At zero the curvature is infinite, and multiplied with squared distances, which are zero.
    return (1.0 + s) * e, -e, torch.where(s > 0, e / torch.where(s > 0, s, 1.0), 0.0)


def _matern_five_halves_curved(s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    e = torch.exp(-s)
    t = (1.0 + s) * e
    return t + s.square() * e / 3.0, t / -3.0, e / 3.0


# The profile k, its slope k' / s, and what follows for that: (k' / s)' / s.
_CURVED: dict[Profile, Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]] = {
    _squared_exponential: _squared_exponential_curved,
    _matern_three_halves: _matern_three_halves_curved,
    _matern_five_halves: _matern_five_halves_curved,
}


def _is_tracked(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _scaled(x: Tensor, z: Tensor, lengthscale: Tensor, *, is_near: bool) -> tuple[Tensor, Tensor]:
    """Both sets in units of the lengthscale. Subtracted before divided, so that offsets cost no digits."""
    if is_near:
        return x / lengthscale, z / lengthscale
    origin = origin_of(z)
    # A quarter of what the dtype holds: differences of two such numbers are finite.
    most = 0.25 * torch.finfo(x.dtype).max
    return ((x - origin) / lengthscale).clamp(-most, most), ((z - origin) / lengthscale).clamp(-most, most)


def _distance(x: Tensor, z: Tensor, factor: float, *, is_near: bool, is_smooth: bool) -> Tensor:
    by_products = is_smooth and is_near and x.shape[-1] >= _MANY_DIMS and _are_central(x, z)
    mode = "use_mm_for_euclid_dist" if by_products else "donot_use_mm_for_euclid_dist"
    s = torch.cdist(x, z, compute_mode=mode)
    s = s if factor == 1.0 else s.mul_(factor)
    return s if is_near else s.clamp_max_(_FAR)


def _are_central(*inputs: Tensor) -> bool:
    """Tell if scaled inputs are so close to zero that no digits are lost in their products."""
    if not all(each.numel() for each in inputs):
        return False
    return sum(float(_norm(each, dim=-1).max()) ** 2 for each in inputs) <= _MOST_CENTRAL


class _FusedStationary(torch.autograd.Function):
    r"""Value of a stationary kernel, with a gradient that costs one matrix product.

    With $h_{ij} = g_{ij} k'(r_{ij}) / r_{ij}$, the gradient in $x_i$ is $\sum_j h_{ij} (x_i - z_j) / \ell^2$: finite at
    coinciding points, and no intermediate of the forward pass is kept but the slope.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, z: Tensor, lengthscale: Tensor, amplitude: Tensor, how: tuple[Profile, float, bool, bool]
    ) -> Tensor:
        profile, factor, is_near, is_smooth = ctx.how = how
        scaled = _scaled(x, z, lengthscale, is_near=is_near)
        value, slope = profile(_distance(*scaled, factor, is_near=is_near, is_smooth=is_smooth))
        needs_value = ctx.needs_input_grad[3]
        ctx.save_for_backward(x, z, lengthscale, amplitude, slope, value if needs_value else None, *scaled)
        return value * amplitude if needs_value or amplitude.dim() > 2 else value.mul_(amplitude)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grad_outputs
        raw_x, raw_z, lengthscale, amplitude, slope, value, x, z = ctx.saved_tensors
        profile, factor, is_near, _ = ctx.how
        if torch.is_grad_enabled():  # a second derivative was asked for: make the slope a function of x and z
            x, z = _scaled(raw_x, raw_z, lengthscale, is_near=is_near)
            value, slope = profile((factor * _differentiable_distance(x, z)).clamp_max(_FAR))
        needs_x, needs_z, needs_lengthscale, needs_amplitude, *_ = ctx.needs_input_grad
        h, scale = g * slope, factor**2 * amplitude / lengthscale
        grad_x: Any = None
        grad_z: Any = None
        grad_lengthscale = grad_amplitude = None
        if needs_x or needs_lengthscale:
            grad_x = scale * (h.sum(-1, keepdim=True) * x - h @ z)
        if needs_z or needs_lengthscale:
            grad_z = scale * (h.sum(-2).unsqueeze(-1) * z - h.mT @ x)
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
