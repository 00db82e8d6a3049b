"""An exact GP with known noise: BoTorch's fit of the hyperparameters, and textbook algebra."""

from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from gpytorch.mlls import ExactMarginalLogLikelihood
from jaxtyping import Float
from torch import Tensor

__all__ = ["ExactGP", "ExactPrediction", "fit_exact"]


class ExactPrediction(NamedTuple):
    """Moments of the latent function.

    Attributes:
        mean: Mean at each input.
        covariance: Joint covariance.
    """

    mean: Float[Tensor, " n"]
    covariance: Float[Tensor, "n n"]


@final
@dataclass(frozen=True, eq=False)
class ExactGP:
    """An exact GP given observations with noise of the same variance.

    Attributes:
        kernel: Kernel, with its hyperparameters.
        mean: Mean function.
        inputs: Inputs of the observations.
        targets: Observed values.
        noise_variance: Variance of their noise.
    """

    kernel: Kernel
    mean: Mean
    inputs: Float[Tensor, "n d"]
    targets: Float[Tensor, " n"]
    noise_variance: float

    def predict(self, X: Float[Tensor, "k d"]) -> ExactPrediction:
        """Predict the latent function by the Cholesky factor of the kernel matrix."""
        with torch.no_grad():
            K = self.kernel(self.inputs, self.inputs).to_dense()
            L = torch.linalg.cholesky(K + self.noise_variance * torch.eye(len(K), dtype=K.dtype))
            V = torch.linalg.solve_triangular(L, self.kernel(self.inputs, X).to_dense(), upper=False)
            residual = (self.targets - self.mean(self.inputs)).unsqueeze(-1)
            half = torch.linalg.solve_triangular(L, residual, upper=False).squeeze(-1)
            return ExactPrediction(self.mean(X) + V.mT @ half, self.kernel(X, X).to_dense() - V.mT @ V)

    def condition(self, X: Float[Tensor, "k d"], y: Float[Tensor, " k"]) -> "ExactGP":
        """The GP given further observations, with the same hyperparameters."""
        return replace(self, inputs=torch.cat([self.inputs, X]), targets=torch.cat([self.targets, y]))


def fit_exact(
    X: Float[Tensor, "n d"], y: Float[Tensor, " n"], kernel: Kernel, *, mean: Mean, noise_variance: float
) -> ExactGP:
    """Fit the hyperparameters of an exact GP by its marginal likelihood.

    Args:
        X: Inputs.
        y: Targets.
        kernel: Kernel, with priors of its own; changed by the fit.
        mean: Mean function; changed likewise.
        noise_variance: Known variance of the noise.
    """
    model = SingleTaskGP(
        X,
        y.unsqueeze(-1),
        train_Yvar=torch.full_like(y, noise_variance).unsqueeze(-1),
        covar_module=kernel,
        mean_module=mean,
        outcome_transform=None,
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    model.eval()
    return ExactGP(model.covar_module, model.mean_module, X, y, noise_variance)
