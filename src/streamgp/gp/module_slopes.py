"""Slopes of kernels whose values GPyTorch evaluates: rational-quadratic, periodic and cosine ones."""

import math
from collections.abc import Callable
from typing import Any

import torch
from gpytorch.kernels import CosineKernel, Kernel, PeriodicKernel, RQKernel, ScaleKernel
from torch import Tensor

from streamgp.gp.jets import Jet, Moving, difference, no_slopes

__all__ = ["module_jet"]

# Up to here the difference of cosine and sinc is a series, of which four terms are exact in double precision.
_NEAR = 0.1


def module_jet(module: Kernel, first: Moving, second: Moving) -> Jet:
    """Evaluate a kernel and its slopes; refuse one whose slopes are not known."""
    inside = module.base_kernel if type(module) is ScaleKernel else module
    jet = _JETS.get(type(inside))
    if jet is None:
        raise no_slopes(f"The slopes of a {type(inside).__name__} are not known")
    if module.active_dims is not None:
        first, second = _selected(first, module.active_dims), _selected(second, module.active_dims)
    found = jet(inside, first, second)
    return found * module.outputscale[..., None, None] if type(module) is ScaleKernel else found


def _selected(moving: Moving, dims: Tensor) -> Moving:
    x, v = moving
    return Moving(x.index_select(-1, dims), None if v is None else v.index_select(-1, dims))


def _rational_quadratic(kernel: Any, first: Moving, second: Moving) -> Jet:
    r"""Evaluate $(1 + q / 2 \alpha)^{-\alpha}$ of the squared distance $q$ in lengthscales."""
    apart, alpha = difference(first, second, kernel.lengthscale), kernel.alpha.unsqueeze(-1)
    q = (apart * apart).sum()
    base = 1.0 + q.value / (2.0 * alpha)
    slope = -0.5 * base.pow(-alpha - 1.0)
    return q.through(base.pow(-alpha), slope, -0.5 * (alpha + 1.0) / alpha * slope / base)


def _periodic(kernel: Any, first: Moving, second: Moving) -> Jet:
    r"""Evaluate $\exp(-2 \sum_j \sin^2(\theta_j) / \ell_j)$, $\theta = \pi \Delta / p$."""
    angle = difference(first, second, kernel.period_length / math.pi)
    twice = 2.0 * angle.value
    squared = angle.through(angle.value.sin().square(), twice.sin(), 2.0 * twice.cos())
    return (squared * (-2.0 / kernel.lengthscale.unsqueeze(-2))).sum().exp()


def _cosine(kernel: Any, first: Moving, second: Moving) -> Jet:
    r"""Evaluate $\cos x$, $x^2 = \pi^2 q$, a smooth function of the squared distance $q$ in periods."""
    apart = difference(first, second, kernel.period_length / math.pi)
    square = (apart * apart).sum()
    x2 = square.value
    is_near = x2 < _NEAR**2
    x = torch.where(is_near, 1.0, x2).sqrt()
    series = -1.0 / 3.0 + x2 * (1.0 / 30.0 - x2 * (1.0 / 840.0 - x2 / 45360.0))
    # (cos x - sin x / x) / x², whose parts cancel near zero, and sin x / x.
    bend = torch.where(is_near, series, (x.cos() - x.sin() / x) / x.square())
    ratio = torch.where(is_near, 1.0 - x2 * (1.0 / 6.0 - x2 * (1.0 / 120.0 - x2 / 5040.0)), x.sin() / x)
    return square.through(x2 * bend + ratio, -0.5 * ratio, -0.25 * bend)


_JETS: dict[type[Kernel], Callable[[Any, Moving, Moving], Jet]] = {
    RQKernel: _rational_quadratic,
    PeriodicKernel: _periodic,
    CosineKernel: _cosine,
}
