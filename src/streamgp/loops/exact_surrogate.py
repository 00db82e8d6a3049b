"""BoTorch's exact GP as the model of a trust region, for comparison with the sparse one."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import gpytorch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.utils.gpytorch_modules import get_gaussian_likelihood_with_lognormal_prior
from botorch.utils.sampling import manual_seed
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor

from streamgp.loops.observations import Observations
from streamgp.loops.settings import LoopSettings
from streamgp.loops.surrogate import AbstractSurrogate
from streamgp.loops.units import OutcomeUnits
from streamgp.seeds import derived_seed
from streamgp.storage import register
from streamgp.threads import limit_threads

__all__ = ["ExactSurrogate", "fit_exact"]

# Iterations from the hyperparameters before, which a batch of new points changes little, and from none.
_WARM_ITERATIONS, _COLD_ITERATIONS = 10, 200
# GPyTorch would turn to iterative solvers for larger matrices; the model is to be exact.
_ALWAYS_CHOLESKY = 2**31
_FIT = 2


@register
@final
@dataclass(frozen=True, eq=False)
class ExactSurrogate(AbstractSurrogate):
    """An exact GP by its data and hyperparameters, of which the model is made when it is needed.

    Attributes:
        inputs: Of the model.
        targets: In its units.
        units: Those units.
        lengthscale: Of each dimension.
        outputscale: Variance of the function.
        constant: Its mean.
        noise_variance: Of the targets.
        is_noise_learned: Whether it was learned.
        num_fitted: Number of rows.
    """

    inputs: Float[Tensor, "n d"]
    targets: Float[Tensor, " n"]
    units: tuple[OutcomeUnits, ...]
    lengthscale: Float[Tensor, " d"]
    outputscale: Float[Tensor, ""]
    constant: Float[Tensor, ""]
    noise_variance: Float[Tensor, ""]
    is_noise_learned: bool
    num_fitted: int
    knows_success = False

    def noise_share(self, output: int) -> float:
        """The noise variance relative to the function's prior variance."""
        return float(self.noise_variance / self.outputscale)

    def model(self) -> SingleTaskGP:
        """The model for rules."""
        return self._model

    @cached_property
    def _model(self) -> Any:
        model = _make(self.inputs, self.targets, self.noise_variance, self, is_learned=self.is_noise_learned)
        model.requires_grad_(False)
        return model.eval()


def fit_exact(data: Observations, settings: LoopSettings, start: ExactSurrogate | None) -> ExactSurrogate:
    """Fit BoTorch's exact GP, with the kernel and priors of the sparse one and as many iterations.

    Args:
        data: All data of the current run, with one Gaussian outcome.
        settings: Of the loop.
        start: The last fit.
    """
    objective, known = settings.objectives[0], data.rows(data.is_informative)
    units = objective.outcome.find_units(
        known.y[:, 0], is_reversed=objective.is_reversed, is_ranked=settings.surrogate.is_ranked
    )
    X, y = settings.space.inputs(known.points), units.inside(known.y[:, 0])
    likelihood = objective.outcome.in_units(units)
    variance, is_learned = likelihood.gaussian_noise_variance, bool(likelihood.learnable())
    assert variance is not None  # as the constructor checks
    model = _make(X, y, variance, start, is_learned=is_learned)
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    most = _COLD_ITERATIONS if start is None else _WARM_ITERATIONS
    seed = derived_seed(settings.seed, _FIT, len(X))
    with limit_threads(len(X) ** 3), manual_seed(seed), gpytorch.settings.max_cholesky_size(_ALWAYS_CHOLESKY):
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": most}})
    noise = model.likelihood.noise.detach().reshape(-1)[0] if is_learned else variance
    return ExactSurrogate(
        X,
        y,
        (units,),
        model.covar_module.base_kernel.lengthscale.detach().reshape(-1).clone(),
        model.covar_module.outputscale.detach().reshape(()).clone(),
        model.mean_module.constant.detach().reshape(()).clone(),
        noise.to(X).reshape(()).clone(),
        is_learned,
        len(X),
    )


def _make(X: Tensor, y: Tensor, variance: Tensor, start: ExactSurrogate | None, *, is_learned: bool) -> Any:
    """An exact GP that starts where the sparse one would."""
    d = X.shape[-1]
    base = MaternKernel(2.5, ard_num_dims=d, lengthscale_prior=LogNormalPrior(2**0.5 + 0.5 * math.log(d), 3**0.5))
    kernel = ScaleKernel(base, outputscale_prior=LogNormalPrior(1.0, 1.0)).to(X)
    base.lengthscale = math.sqrt(d) * X.std(0, correction=0).clamp_min(1e-6) if start is None else start.lengthscale
    kernel.outputscale = 1.0 if start is None else start.outputscale
    variance = variance.to(X) if start is None or not is_learned else start.noise_variance
    observed: dict[str, Any] = {"train_Yvar": variance.expand(len(X), 1)}
    if is_learned:
        noisy = get_gaussian_likelihood_with_lognormal_prior().to(X)
        noisy.noise = variance.clamp_min(2.0 * float(noisy.noise_covar.raw_noise_constraint.lower_bound))
        observed = {"likelihood": noisy}
    model = SingleTaskGP(X, y.unsqueeze(-1), covar_module=kernel, outcome_transform=None, **observed)
    if start is not None:
        model.mean_module.initialize(constant=start.constant)
    return model
