"""GPyTorch models to test against."""

from typing import Any

import gpytorch
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean, Mean
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from torch import Tensor

__all__ = ["SVGP"]


class SVGP(gpytorch.models.ApproximateGP):
    """A variational GP with a scaled Matérn-5/2 kernel and a constant mean, unless told otherwise."""

    def __init__(
        self,
        inducing_points: Tensor,
        *,
        kernel: Kernel | None = None,
        mean: Mean | None = None,
        strategy: Any = VariationalStrategy,
        distribution: Any = CholeskyVariationalDistribution,
        batch_shape: tuple[int, ...] = (),
    ) -> None:
        shape = torch.Size(batch_shape)
        belief = distribution(inducing_points.shape[-2], batch_shape=shape)
        super().__init__(strategy(self, inducing_points, belief))
        num_dims = inducing_points.shape[-1]
        base = MaternKernel(2.5, ard_num_dims=num_dims, batch_shape=shape)
        self.covar_module = ScaleKernel(base, batch_shape=shape) if kernel is None else kernel
        self.mean_module = ConstantMean(batch_shape=shape) if mean is None else mean
        self.to(inducing_points.dtype)

    def forward(self, x: Tensor) -> MultivariateNormal:
        """The prior at the inputs."""
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))
