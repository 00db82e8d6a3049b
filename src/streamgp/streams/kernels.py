"""Kernels of a stream's function: stationary ones that are compiled, and any other of GPyTorch."""

import math
from typing import Any, NamedTuple, final

import gpytorch
import numpy as np
import torch
from jaxtyping import Float

from streamgp.errors import OptionError

__all__ = ["FAMILIES", "ModuleKernel", "Stationary", "StreamKernel", "family_of", "slope_of", "to_module", "value_of"]

# By name, in the order of the numbers that the compiled functions know them by.
FAMILIES = ("matern-5/2", "matern-3/2", "matern-1/2", "rbf")
_LEAST_SQUARE = 1e-24


def family_of(name: str) -> int:
    """Return the number of a kernel of this name."""
    if name not in FAMILIES:
        raise OptionError(f"kernel must be one of {', '.join(map(repr, FAMILIES))} or a GPyTorch kernel, not {name!r}.")
    return FAMILIES.index(name)


def value_of(family: int, square: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return the correlation at squared distances, in lengthscales."""
    if family == 3:
        return np.exp(-0.5 * square)
    r = np.sqrt((5.0, 3.0, 1.0)[family] * square)
    return np.exp(-r) * (1.0 + (0.0 if family == 2 else r) + (r * r / 3.0 if family == 0 else 0.0))


def slope_of(family: int, square: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return minus twice the derivative of the correlation in the squared distance."""
    if family == 3:
        return np.exp(-0.5 * square)
    r = np.sqrt((5.0, 3.0, 1.0)[family] * np.maximum(square, _LEAST_SQUARE))
    return np.exp(-r) * (5.0 / 3.0 * (1.0 + r) if family == 0 else (3.0 if family == 1 else 1.0 / r))


class Stationary(NamedTuple):
    """Kernel of variance one: number of its family, and inverse lengthscales."""

    family: int
    inverse_lengthscales: Float[np.ndarray, " d"]

    def __call__(self, first: Float[np.ndarray, "n d"], second: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "n m"]:
        """Return the kernel matrix."""
        a, b = first * self.inverse_lengthscales, second * self.inverse_lengthscales
        square = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2.0 * a @ b.T
        return np.asarray(value_of(self.family, np.maximum(square, 0.0)))

    def diagonal(self, inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """Return the variances."""
        return np.ones(len(inputs))


@final
class ModuleKernel:
    """Kernel of GPyTorch, evaluated without gradients."""

    def __init__(self, module: gpytorch.kernels.Kernel) -> None:
        self.module = module

    def __call__(self, first: Float[np.ndarray, "n d"], second: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "n m"]:
        """Return the kernel matrix."""
        return np.asarray(self._evaluated(first, second, diag=False))

    def diagonal(self, inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """Return the variances."""
        return np.asarray(self._evaluated(inputs, inputs, diag=True))

    def _evaluated(self, first: np.ndarray, second: np.ndarray, *, diag: bool) -> np.ndarray:
        a, b = torch.from_numpy(np.ascontiguousarray(first)), torch.from_numpy(np.ascontiguousarray(second))
        with torch.no_grad(), gpytorch.settings.lazily_evaluate_kernels(False):
            found: Any = self.module(a, b, diag=diag)
            return (found if diag else found.to_dense()).numpy()


StreamKernel = Stationary | ModuleKernel


def to_module(kernel: StreamKernel, variance: float) -> gpytorch.kernels.Kernel:
    """Return a kernel of GPyTorch that is the same, times a variance; fixed."""
    if isinstance(kernel, ModuleKernel):
        return kernel.module
    d = len(kernel.inverse_lengthscales)
    nu = (2.5, 1.5, 0.5, math.inf)[kernel.family]
    if math.isinf(nu):
        base: Any = gpytorch.kernels.RBFKernel(ard_num_dims=d)
    else:
        base = gpytorch.kernels.MaternKernel(nu, ard_num_dims=d)
    module = gpytorch.kernels.ScaleKernel(base).double()
    module.outputscale = variance
    base.lengthscale = torch.from_numpy(1.0 / kernel.inverse_lengthscales)
    return module.requires_grad_(False)
