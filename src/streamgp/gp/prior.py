"""The prior of a Gaussian process: a snapshot of the user's kernel and mean."""

from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, Mean, ZeroMean
from jaxtyping import Float
from torch import Tensor
from torch.nn import Module

from streamgp.errors import ArgumentTypeError, ValueRangeError
from streamgp.evidence import Evidence
from streamgp.gp.functionals import row_covariance, row_magnitude, row_mean, row_variance
from streamgp.gp.inducing import AbstractInducing, inducing_variables
from streamgp.gp.kernel_dims import check_num_dims
from streamgp.gp.kernel_function import AbstractKernelFunction
from streamgp.gp.kernels import read_kernel
from streamgp.shapes import broadcast_shapes

__all__ = ["Prior"]


@final
@dataclass(frozen=True, eq=False)
class Prior:
    """A kernel and a mean that no longer change.

    Attributes:
        kernel: GPyTorch kernel; build with `Prior.snapshot`, so that later training does not reach it.
        mean_function: GPyTorch mean.
        zero: The number zero, in the dtype and on the device of the process.
    """

    kernel: Kernel
    mean_function: Mean
    zero: Float[Tensor, ""]

    @classmethod
    def snapshot(cls, kernel: Kernel, mean: Mean, *, like: Tensor) -> "Prior":
        """Copy a kernel and a mean, detached from training, in the dtype and on the device of `like`.

        Args:
            kernel: GPyTorch kernel, for inputs of the dimension of `like`.
            mean: GPyTorch mean.
            like: Inputs.
        """
        _check_module(kernel, Kernel, "kernel")
        _check_module(mean, Mean, "mean")
        check_num_dims(kernel, like.shape[-1])
        kernel, mean = (
            deepcopy(module).to(dtype=like.dtype, device=like.device).eval().requires_grad_(False)
            for module in (kernel, mean)
        )
        _check_parameters(kernel, "kernel")
        _check_parameters(mean, "mean")
        return cls(kernel, mean, like.new_zeros(()))

    @cached_property
    def kernel_function(self) -> AbstractKernelFunction:
        """The kernel, ready to be evaluated."""
        return read_kernel(self.kernel)

    @cached_property
    def batch_shape(self) -> torch.Size:
        """Leading axes of the hyperparameters."""
        return broadcast_shapes(self._kernel_batch_shape, getattr(self.mean_function, "batch_shape", ()))

    @cached_property
    def _kernel_batch_shape(self) -> torch.Size:
        # GPyTorch walks through all submodules for this, which takes longer than evaluating a small kernel matrix.
        return self.kernel.batch_shape

    def mean(self, X: Float[Tensor, "*b n d"] | Evidence) -> Float[Tensor, "*c n"]:
        r"""The prior mean $\mu(X)$, or that of rows of evidence."""
        if isinstance(X, Evidence):
            return row_mean(self.mean_function, X)
        if self._constant is not None:
            return self._constant.expand(broadcast_shapes(self._constant.shape[:-1], X.shape[:-2]) + X.shape[-2:-1])
        return self.mean_function(X)

    @cached_property
    def _constant(self) -> Tensor | None:
        """The value of a zero or constant mean, with an axis for the inputs."""
        if type(self.mean_function) is ConstantMean:
            return self.mean_function.constant.unsqueeze(-1)
        if type(self.mean_function) is ZeroMean:
            return self.zero.expand(*self.mean_function.batch_shape, 1)
        return None

    def variance(self, X: Float[Tensor, "*b n d"] | Evidence) -> Float[Tensor, "*c n"]:
        """The diagonal of the kernel matrix, in O(n)."""
        if isinstance(X, Evidence):
            return row_variance(self.kernel_function, X, self._kernel_batch_shape)
        return self.kernel_function.diagonal(X)

    def magnitude(self, X: Float[Tensor, "*b n d"] | Evidence) -> Float[Tensor, "*c n"]:
        """The variances whose rounding covariances carry; larger than `variance` where a row is a difference."""
        if isinstance(X, Evidence):
            return row_magnitude(self.kernel_function, X, self._kernel_batch_shape)
        return self.kernel_function.diagonal(X)

    def covariance(
        self, first: Float[Tensor, "*b n d"] | Evidence, second: Float[Tensor, "*c m d"] | Evidence
    ) -> Float[Tensor, "*e n m"]:
        """The kernel matrix between two sets of inputs or evidence.

        Where one of the sets has no leading axes, those of the other are flattened into rows: one large kernel
        evaluation instead of many small ones.
        """
        if isinstance(first, Evidence) or isinstance(second, Evidence):
            return row_covariance(self.kernel_function, first, second)
        if not self._kernel_batch_shape:
            if second.dim() == 2 and first.dim() > 2:
                return self.kernel_function.matrix(first.flatten(0, -2), second).unflatten(0, first.shape[:-1])
            if first.dim() == 2 and second.dim() > 2:
                flat = self.kernel_function.matrix(first, second.flatten(0, -2))
                return flat.unflatten(-1, second.shape[:-1]).movedim(0, -2)
        return self.kernel_function.matrix(first, second)

    def inducing(self, points: Float[Tensor, "*b m d"]) -> AbstractInducing:
        """The inducing variables at points; the weights of the kernel's features where there are none."""
        return inducing_variables(points, self.kernel_function, self.covariance)


def _check_module(module: object, kind: type, name: str) -> None:
    if not isinstance(module, kind):
        raise ArgumentTypeError(
            f"{name} must be a GPyTorch {kind.__name__}, but is a {type(module).__name__}. "
            f"Pass one of gpytorch.{kind.__name__.lower()}s."
        )


def _check_parameters(module: Module, name: str) -> None:
    for parameter, value in module.named_parameters():
        if not bool(torch.isfinite(value).all()):
            raise ValueRangeError(
                f"The {name}'s parameter {parameter} is not finite in {value.dtype}. Set it to a value that its dtype "
                "can hold; GPyTorch reads a number of Python in single precision, and a tensor as it is."
            )
