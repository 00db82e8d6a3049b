"""Writing a sparse posterior as a GPyTorch model."""

from copy import deepcopy
from typing import Any, final

import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.models import ApproximateGP
from gpytorch.module import Module
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from gpytorch.variational._variational_strategy import _VariationalStrategy
from torch import Tensor

from streamgp.errors import UnsupportedError
from streamgp.gp.coregionalization import output_rows
from streamgp.gp.sparse import SparseProcess

__all__ = ["ExportedGP", "OutputsVariationalStrategy", "write_gpytorch"]


@final
class OutputsVariationalStrategy(_VariationalStrategy):  # type: ignore[misc] # GPyTorch's strategies have no types
    """All outputs at each input, by a strategy for inputs with a column for the output.

    It is called as GPyTorch's own strategies of several outputs are. Unlike theirs, it keeps the correlation of beliefs
    about latent functions.
    """

    def __init__(self, base_variational_strategy: VariationalStrategy, num_tasks: int) -> None:
        """Wrap a strategy.

        Args:
            base_variational_strategy: That of inputs with a column for the output.
            num_tasks: Number of outputs.
        """
        Module.__init__(self)  # not that of a strategy with inducing points of its own
        self.base_variational_strategy = base_variational_strategy
        self.num_tasks = num_tasks

    @property
    def prior_distribution(self) -> MultivariateNormal:
        """The prior of the inducing variables."""
        return self.base_variational_strategy.prior_distribution

    @property
    def variational_distribution(self) -> MultivariateNormal:
        """The belief about them."""
        return self.base_variational_strategy.variational_distribution

    @property
    def variational_params_initialized(self) -> Tensor:
        """True once that has been set."""
        return self.base_variational_strategy.variational_params_initialized

    def __call__(
        self, x: Tensor, *, task_indices: Tensor | None = None, prior: bool = False, **kwargs: Any
    ) -> MultivariateNormal:
        """Predict all outputs at inputs `(*b, n, d)`, or one at each.

        Args:
            x: Inputs.
            task_indices: Which output is looked at in each row, `(*b, n)`; all of them by default.
            prior: Whether the prior is asked for.
            **kwargs: For the strategy inside.
        """
        options = kwargs | {"prior": prior, "diag": False}
        if task_indices is not None:
            column = task_indices.to(x).expand(x.shape[:-1]).unsqueeze(-1)
            return self.base_variational_strategy(torch.cat([x, column], dim=-1), **options)
        rows = self.base_variational_strategy(output_rows(x, range(self.num_tasks)), **options)
        mean = rows.mean.unflatten(-1, (x.shape[-2], self.num_tasks))
        return MultitaskMultivariateNormal(mean, rows.lazy_covariance_matrix)


@final
class ExportedGP(ApproximateGP):  # type: ignore[misc] # GPyTorch's models have no types
    """A GPyTorch model with the kernel, mean, inducing points and belief of a sparse posterior, ready for training."""

    def __init__(self, process: SparseProcess, num_outputs: int | None = None) -> None:
        """Copy everything.

        Args:
            process: The sparse posterior.
            num_outputs: Number of outputs, if inputs have a column for them that the model is to fill in.
        """
        Z, m = process.inducing_points, process.whitened_mean
        distribution = CholeskyVariationalDistribution(Z.shape[-2], batch_shape=m.shape[:-1])
        strategy = VariationalStrategy(self, Z.clone(), distribution, jitter_val=process.jitter)
        super().__init__(strategy if num_outputs is None else OutputsVariationalStrategy(strategy, num_outputs))
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


def write_gpytorch(process: SparseProcess, num_outputs: int | None = None) -> ExportedGP:
    """Write a sparse posterior as a whitened `ApproximateGP` in evaluation mode, with the same jitter.

    Args:
        process: The sparse posterior.
        num_outputs: Number of outputs, if inputs have a column for them that the model is to fill in.
    """
    if not process.inducing_points.shape[-2]:
        raise UnsupportedError(
            "GPyTorch's variational strategies have inducing points, but this belief is about the weights of features. "
            "Carry it to points first, as many as there are features: "
            "gp.absorb(X[:0], y[:0], noise_variance=1.0, inducing=points)."
        )
    return ExportedGP(process, num_outputs).eval()


def _triangular(root: Tensor) -> Tensor:
    r"""The lower triangular root of $R R^\top$ with no negative diagonal, from $R^\top = Q L^\top$."""
    upper = torch.linalg.qr(root.double().mT, mode="r").R
    sign = torch.where(upper.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(upper)
    return (sign.unsqueeze(-1) * upper).mT.to(root.dtype)
