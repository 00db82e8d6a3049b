"""An exact GP with known noise, and its choice by integrated variance."""

from dataclasses import dataclass
from typing import final

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import GammaPrior
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Gaussian
from streamgp.models import OnlineGP

__all__ = ["FixedNoiseGP", "paper_kernel"]


def paper_kernel(num_dims: int) -> ScaleKernel:
    """Scaled Matérn-1/2 kernel with a lengthscale for each dimension and the paper's priors."""
    base = MaternKernel(nu=0.5, ard_num_dims=num_dims, lengthscale_prior=GammaPrior(3.0, 6.0))
    return ScaleKernel(base, outputscale_prior=GammaPrior(2.0, 0.15)).double()


@final
@dataclass(frozen=True, eq=False)
class FixedNoiseGP:
    """BoTorch's `SingleTaskGP` with fixed noise, a Matérn-1/2 kernel and a constant mean.

    Hyperparameters are learned by BoTorch. Predictions and choices are made with an `OnlineGP` whose inducing points
    are all inputs, which is the same GP.

    Attributes:
        model: The fitted model; not changed any more.
        twin: The same GP, quick to condition.
        noise_variance: Of the next observations: as in BoTorch, the mean of those that were made.
    """

    model: SingleTaskGP
    twin: OnlineGP
    noise_variance: float

    @classmethod
    def fit(
        cls,
        X: Tensor,
        y: Tensor,
        noise_variance: Tensor,
        *,
        start: "FixedNoiseGP | None" = None,
        is_refitted: bool = True,
        max_iterations: int = 50,
    ) -> "FixedNoiseGP":
        """Condition an exact GP on all observations.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`.
            noise_variance: Their known noise variances `(n,)`.
            start: Earlier model whose hyperparameters are the start.
            is_refitted: Whether to learn hyperparameters, by the marginal likelihood with the paper's priors.
            max_iterations: Most iterations of L-BFGS.
        """
        # Targets are not standardized, so that all models of the study have the same prior.
        model = SingleTaskGP(
            X,
            y.unsqueeze(-1),
            noise_variance.unsqueeze(-1),
            covar_module=paper_kernel(X.shape[-1]),
            outcome_transform=None,
        )
        if start is not None:
            for part in ("covar_module", "mean_module"):
                getattr(model, part).load_state_dict(getattr(start.model, part).state_dict())
        if is_refitted:
            options = {"options": {"maxiter": max_iterations}}
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs=options)
        model.eval().requires_grad_(False)
        prior = SparseGP.from_prior(model.covar_module, X, mean=model.mean_module)
        gp, _ = prior.absorb(X, y, noise_variance=noise_variance, inducing="keep")
        expected = noise_variance.mean()
        return cls(model, OnlineGP(gp, Gaussian(expected, is_learned=False)), float(expected))

    def predict(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the function at inputs `(n, d)`."""
        prediction = self.twin.gps[0].predict(X)
        return prediction.mean, prediction.variance

    def mean(self, X: Tensor) -> Tensor:
        """The mean alone."""
        return self.twin.gps[0].predict(X).mean

    def choose(self, candidates: Tensor, targets: Tensor, *, num_chosen: int) -> list[int]:
        r"""Choose candidates one after the other, each the one that lowers the integrated variance most.

        Observing candidate $c$ with noise $\sigma^2$ takes $k(\cdot, c) \, k(c, \cdot) / (k(c, c) + \sigma^2)$ from the
        covariance $k$ of the belief. This is what BoTorch's `qNegIntegratedPosteriorVariance` finds by fantasies, for
        each candidate anew.

        Args:
            candidates: Inputs `(n, d)`.
            targets: Inputs `(t, d)` over which the variance is averaged.
            num_chosen: How many to choose.
        """
        n = len(candidates)
        if num_chosen > n:
            raise ValueRangeError(
                f"{num_chosen} candidates cannot be chosen of {n}. Pass more candidates, or choose fewer."
            )
        everywhere = torch.cat([candidates, targets])
        with torch.no_grad():
            cross = self.twin.gps[0].predict(everywhere, covariance=True).covariance[:n]
        chosen: list[int] = []
        for _ in range(num_chosen):
            variance = cross.diagonal() + self.noise_variance
            gains = cross[:, n:].square().sum(-1) / variance
            gains[chosen] = -torch.inf
            best = int(gains.argmax())
            chosen.append(best)
            cross = cross - torch.outer(cross[:, best], cross[best]) / variance[best]
        return chosen
