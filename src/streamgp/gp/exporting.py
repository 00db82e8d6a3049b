"""Writing a sparse posterior as a GPyTorch model."""

from copy import deepcopy
from typing import Any, final

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.models import ApproximateGP
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from torch import Tensor

from streamgp.errors import UnsupportedError
from streamgp.gp.sparse import SparseProcess

__all__ = ["ExportedGP", "write_gpytorch"]


@final
class ExportedGP(ApproximateGP):  # type: ignore[misc] # GPyTorch's models have no types
    """A GPyTorch model with the kernel, mean, inducing points and belief of a sparse posterior, ready for training."""

    def __init__(self, process: SparseProcess) -> None:
        Z, m = process.inducing_points, process.whitened_mean
        distribution = CholeskyVariationalDistribution(Z.shape[-2], batch_shape=m.shape[:-1])
        super().__init__(VariationalStrategy(self, Z.clone(), distribution, jitter_val=process.jitter))
        self.mean_module: Any = deepcopy(process.prior.mean_function).requires_grad_(True)
        self.covar_module: Any = deepcopy(process.prior.kernel).requires_grad_(True)
        self.to(dtype=Z.dtype, device=Z.device)
        with torch.no_grad():
            distribution.variational_mean.copy_(m)
            distribution.chol_variational_covar.copy_(_triangular(process.whitened_root))
            # Or the first call would put the prior in place of the belief.
            self.variational_strategy.variational_params_initialized.fill_(1)

    def forward(self, x: Tensor) -> MultivariateNormal:
        """The prior at the inputs."""
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def write_gpytorch(process: SparseProcess) -> ExportedGP:
    """Write a sparse posterior as a whitened `ApproximateGP` in evaluation mode, with the same jitter."""
    if not process.inducing_points.shape[-2]:
        raise UnsupportedError(
            "GPyTorch's variational strategies have inducing points, but this belief is about the weights of features. "
            "Carry it to points first, as many as there are features: "
            "gp.absorb(X[:0], y[:0], noise_variance=1.0, inducing=points)."
        )
    return ExportedGP(process).eval()


def _triangular(root: Tensor) -> Tensor:
    r"""The lower triangular root of $R R^\top$ with no negative diagonal, from $R^\top = Q L^\top$."""
    upper = torch.linalg.qr(root.double().mT, mode="r").R
    sign = torch.where(upper.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(upper)
    return (sign.unsqueeze(-1) * upper).mT.to(root.dtype)
