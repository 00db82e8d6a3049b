"""The model of a trust region: fitted anew to its data, from the hyperparameters before."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import gpytorch
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.utils.gpytorch_modules import get_gaussian_likelihood_with_lognormal_prior
from botorch.utils.sampling import manual_seed
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.models import OnlineGP
from streamgp.threads import few_threads
from streamgp.training import fit
from streamgp.training.inducing import pivoted_points

__all__ = ["FittedModel", "Hyperparameters", "fit_exact", "fit_sparse"]

# Iterations from the hyperparameters before, which a batch of new points changes little, and from none.
_WARM_ITERATIONS, _COLD_ITERATIONS = 10, 200
# GPyTorch would turn to iterative solvers for larger matrices; the model is to be exact.
_ALWAYS_CHOLESKY = 2**31


@final
@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Where the next fit starts.

    Attributes:
        lengthscale: Of each dimension of the unit cube.
        outputscale: Variance of the function.
        constant: Its mean.
        likelihood: What was learned of the likelihood, by name.
    """

    lengthscale: Float[Tensor, " d"]
    outputscale: Float[Tensor, ""]
    constant: Float[Tensor, ""]
    likelihood: Mapping[str, Tensor]


@final
@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model of one output on the unit cube, in the units of its targets, and what was learned."""

    model: Model
    hyperparameters: Hyperparameters


def fit_sparse(
    X: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    *,
    likelihood: AbstractLikelihood,
    start: Hyperparameters | None,
    num_inducing: int,
    objective: str,
    seed: int,
) -> FittedModel:
    """Fit a sparse GP, with inducing points chosen among the inputs by pivoted Cholesky.

    Args:
        X: Inputs.
        y: Targets.
        likelihood: Of the targets.
        start: Hyperparameters of the fit before; a few iterations are then enough.
        num_inducing: Most inducing points.
        objective: `"elbo"` or `"pll"`.
        seed: Of what is random in it.
    """
    generator = torch.Generator().manual_seed(seed)
    options: dict[str, Any] = {"learn_inducing": False, "objective": objective, "generator": generator}
    if start is None:
        result = fit(X, y, likelihood=likelihood, num_inducing=num_inducing, inducing="pivoted", **options)
    else:
        kernel, mean = _kernel(start, X), _mean(start)
        Z = pivoted_points(kernel, X, min(num_inducing, len(X)), generator=generator)
        result = fit(
            X,
            y,
            likelihood=likelihood.with_learnable(start.likelihood),
            start=SparseGP.from_prior(kernel, Z, mean=mean),
            num_inducing=len(Z),
            max_iterations=_WARM_ITERATIONS,
            **options,
        )
    gp: Any = result.gp
    learned = {name: value.detach() for name, value in result.likelihood.learnable().items()}
    return FittedModel(OnlineGP(result.gp, result.likelihood), _read(gp.kernel, gp.mean, learned))


def fit_exact(
    X: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    *,
    likelihood: Gaussian,
    start: Hyperparameters | None,
    seed: int,
) -> FittedModel:
    """Fit BoTorch's exact GP, with the kernel and priors of the sparse one and as many iterations.

    Args:
        X: Inputs.
        y: Targets.
        likelihood: Of the targets.
        start: Hyperparameters of the fit before.
        seed: Of what BoTorch draws where a fit fails and is tried again.
    """
    model = _exact_model(X, y, likelihood, start)
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    most = _COLD_ITERATIONS if start is None else _WARM_ITERATIONS
    with few_threads(len(X) ** 3), manual_seed(seed), gpytorch.settings.max_cholesky_size(_ALWAYS_CHOLESKY):
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": most}})
    model.requires_grad_(False)
    learned = {"noise_variance": model.likelihood.noise.reshape(()).log()} if likelihood.is_learned else {}
    return FittedModel(model.eval(), _read(model.covar_module, model.mean_module, learned))


def _exact_model(X: Tensor, y: Tensor, likelihood: Gaussian, start: Hyperparameters | None) -> Any:
    """An exact GP that starts where the sparse one would."""
    d = X.shape[-1]
    base = MaternKernel(2.5, ard_num_dims=d, lengthscale_prior=LogNormalPrior(2**0.5 + 0.5 * math.log(d), 3**0.5))
    kernel = ScaleKernel(base, outputscale_prior=LogNormalPrior(1.0, 1.0)).to(X)
    base.lengthscale = math.sqrt(d) * X.std(0, correction=0).clamp_min(1e-6) if start is None else start.lengthscale
    kernel.outputscale = 1.0 if start is None else start.outputscale
    variance = (likelihood if start is None else likelihood.with_learnable(start.likelihood)).noise_variance.to(X)
    observed: dict[str, Any] = {"train_Yvar": variance.expand(len(X), 1)}
    if likelihood.is_learned:
        noisy = get_gaussian_likelihood_with_lognormal_prior().to(X)
        noisy.noise = variance.clamp_min(2.0 * float(noisy.noise_covar.raw_noise_constraint.lower_bound))
        observed = {"likelihood": noisy}
    model = SingleTaskGP(X, y.unsqueeze(-1), covar_module=kernel, outcome_transform=None, **observed)
    if start is not None:
        model.mean_module.initialize(constant=start.constant)
    return model


def _kernel(start: Hyperparameters, X: Tensor) -> ScaleKernel:
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=X.shape[-1])).to(X)
    kernel.base_kernel.lengthscale, kernel.outputscale = start.lengthscale, start.outputscale
    return kernel


def _mean(start: Hyperparameters) -> ConstantMean:
    mean = ConstantMean().to(start.constant)
    mean.initialize(constant=start.constant)
    return mean


def _read(kernel: Any, mean: Any, likelihood: Mapping[str, Tensor]) -> Hyperparameters:
    return Hyperparameters(
        kernel.base_kernel.lengthscale.detach().reshape(-1).clone(),
        kernel.outputscale.detach().reshape(()).clone(),
        mean.constant.detach().reshape(()).clone(),
        {name: value.clone() for name, value in likelihood.items()},
    )
