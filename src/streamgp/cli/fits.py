"""The GPyTorch models of the demonstration, and how they are fitted."""

from collections.abc import Iterable
from typing import final

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood, VariationalELBO
from gpytorch.models import GP, ApproximateGP, ExactGP
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from jaxtyping import Float
from torch import Tensor

__all__ = ["ExactModel", "SparseModel", "fit_exact_model", "fit_sparse_model"]


@final
class SparseModel(ApproximateGP):
    """A whitened SVGP with zero mean and a scaled RBF kernel."""

    def __init__(self, inducing_points: Float[Tensor, "m d"]) -> None:
        # No random start, so that a seed decides everything.
        distribution = CholeskyVariationalDistribution(inducing_points.shape[-2], mean_init_std=0.0)
        super().__init__(VariationalStrategy(self, inducing_points, distribution))
        self.mean_module = ZeroMean()
        self.covar_module = ScaleKernel(RBFKernel())

    def forward(self, X: Float[Tensor, "*b n d"]) -> MultivariateNormal:
        """Return the prior at `X`."""
        return MultivariateNormal(self.mean_module(X), self.covar_module(X))


@final
class ExactModel(ExactGP):
    """An exact GP with zero mean and the given kernel."""

    def __init__(
        self, X: Float[Tensor, "n d"], y: Float[Tensor, " n"], *, kernel: ScaleKernel, noise_variance: float
    ) -> None:
        super().__init__(X, y, _gaussian_likelihood(noise_variance))
        self.mean_module = ZeroMean()
        self.covar_module = kernel

    def forward(self, X: Float[Tensor, "*b n d"]) -> MultivariateNormal:
        """Return the prior at `X`."""
        return MultivariateNormal(self.mean_module(X), self.covar_module(X))


def fit_sparse_model(
    X: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    *,
    inducing_points: Float[Tensor, "m d"],
    noise_variance: float,
    steps: Iterable[int],
) -> SparseModel:
    """Maximize the ELBO with Adam (rate 0.1), one step for each item of `steps`."""
    model = SparseModel(inducing_points)
    model.to(X)
    objective = VariationalELBO(_gaussian_likelihood(noise_variance), model, num_data=y.shape[-1])
    _maximize(objective, model, X, y, learning_rate=0.1, steps=steps)
    return model


def fit_exact_model(
    X: Float[Tensor, "n d"], y: Float[Tensor, " n"], *, noise_variance: float, steps: Iterable[int]
) -> ExactModel:
    """Maximize the marginal likelihood with Adam (rate 0.05), one step for each item of `steps`."""
    model = ExactModel(X, y, kernel=ScaleKernel(RBFKernel()).to(X), noise_variance=noise_variance)
    objective = ExactMarginalLogLikelihood(model.likelihood, model)
    _maximize(objective, model, X, y, learning_rate=0.05, steps=steps)
    return model


def _maximize(
    objective: ExactMarginalLogLikelihood | VariationalELBO,
    model: GP,
    X: Tensor,
    y: Tensor,
    *,
    learning_rate: float,
    steps: Iterable[int],
) -> None:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)
    model.train()
    for _ in steps:
        optimizer.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimizer.step()
    model.eval()


def _gaussian_likelihood(noise_variance: float) -> GaussianLikelihood:
    likelihood = GaussianLikelihood().double()
    likelihood.noise = noise_variance
    likelihood.raw_noise.requires_grad_(False)
    return likelihood
