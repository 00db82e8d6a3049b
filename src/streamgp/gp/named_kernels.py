"""Kernels by name, laid out for a box of inputs."""

from collections.abc import Callable
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import OptionError
from streamgp.gp.interactions import InteractionKernel
from streamgp.gp.spherical_linear import SphericalLinearKernel

__all__ = ["NAMED_KERNELS", "check_kernel_name", "make_kernel"]

# The standard deviation of a uniform distribution, relative to its width.
_UNIFORM = 12.0**-0.5


def _stationary(make: Callable[[int], Any]) -> Callable[[Tensor, Tensor], Kernel]:
    def laid_out(lower: Tensor, upper: Tensor) -> Kernel:
        d = len(lower)
        kernel = make(d).to(lower)
        # Two inputs drawn at random are then about 1.4 lengthscales apart, whatever the dimension.
        kernel.lengthscale = d**0.5 * _UNIFORM * (upper - lower)
        return kernel

    return laid_out


NAMED_KERNELS: dict[str, Callable[[Tensor, Tensor], Kernel]] = {
    "interactions": _stationary(InteractionKernel),
    "matern": _stationary(lambda d: MaternKernel(2.5, ard_num_dims=d)),
    "rbf": _stationary(lambda d: RBFKernel(ard_num_dims=d)),
    "spherical_linear": lambda lower, upper: SphericalLinearKernel(len(lower)).within(lower, upper),
}


def check_kernel_name(name: str) -> None:
    """Refuse a name that no kernel has."""
    if name not in NAMED_KERNELS:
        raise OptionError(
            f"kernel must be a kernel of GPyTorch or one of {', '.join(map(repr, NAMED_KERNELS))}, but is {name!r}."
        )


def make_kernel(
    name: str, lower: Float[Tensor, " d"], upper: Float[Tensor, " d"], *, variance: float = 1.0
) -> ScaleKernel:
    """Make a kernel by name.

    Args:
        name: One of `NAMED_KERNELS`.
        lower: Lower ends of the inputs.
        upper: Upper ends; where they are the same, the width is 1.
        variance: Where that of the kernel starts.
    """
    check_kernel_name(name)
    upper = torch.where(upper > lower, upper, lower + 1.0)
    kernel = ScaleKernel(NAMED_KERNELS[name](lower, upper)).to(lower)
    kernel.outputscale = variance
    return kernel
