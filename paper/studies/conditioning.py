r"""Conditioning a sparse GP beside an exact one, and on returns whose volatility is hidden.

The function is $\sin(2 |x| + x^2 / 2)$ without noise, first seen around 0 and then on [2.5, 5.5]; the returns are
simulated, and the later ones come after the fit.
"""

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch import Tensor

from paper.baselines.exact_gp import ExactPrediction, fit_exact
from paper.baselines.jittered_pseudo_data import predict_through_pseudo_data
from paper.baselines.sabr import Returns, simulate_sabr
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.likelihoods import Gaussian, Volatility
from streamgp.likelihoods.quadrature import expectation
from streamgp.training import FitResult, fit

__all__ = ["STUDY", "ConditioningSettings", "true_function"]

_NOISE_VARIANCE = 0.01
_RANGE = (-4.0, 7.0)
_NEW_RANGE = (2.5, 5.5)
# Returns per unit of the inputs, so that the usual priors of lengthscales fit.
_RETURNS_PER_UNIT = 100.0


@final
@dataclass(frozen=True)
class ConditioningSettings:
    """Settings of both problems.

    Attributes:
        num_first: Observations of the function that are fitted.
        num_new: Observations that come after.
        num_inducing: Inducing points for the function.
        grid_size: Places at which predictions of the function are kept.
        num_first_returns: Returns that are fitted.
        num_new_returns: Returns that come after.
        num_inducing_returns: Inducing points for the returns, on a line over all of them.
        max_iterations: Most iterations of the fit to returns.
        volatility_of_volatility: The constant α of the simulation.
    """

    num_first: int
    num_new: int
    num_inducing: int
    grid_size: int
    num_first_returns: int
    num_new_returns: int
    num_inducing_returns: int
    max_iterations: int
    volatility_of_volatility: float


class _FunctionData(NamedTuple):
    """The function's observations, first and new, and the grid."""

    X: Tensor
    y: Tensor
    X_new: Tensor
    y_new: Tensor
    grid: Tensor


def true_function(X: Tensor) -> Tensor:
    """The function, at inputs `(n, 1)`."""
    return torch.sin(2.0 * X.abs() + X.square() / 2.0).squeeze(-1)


def run(problem: str, method: str, seed: int, settings: ConditioningSettings) -> UnitOutcome:
    """Fit, and condition on what comes after.

    Returns:
        For both problems `x` and `truth`, with `mean` and `deviation` of the function or of the volatility, each
        before and after; `inputs` and `targets` of all observations, of which `num_first` came first. For returns
        also `rmse` of the volatility and `nll` of the returns: before and after, each on the first and on the new ones.
    """
    generator = torch.Generator().manual_seed(seed)
    if problem == "function":
        return _run_function(method, generator, settings)
    return _run_volatility(method, generator, settings)


def _run_function(method: str, generator: torch.Generator, settings: ConditioningSettings) -> UnitOutcome:
    X = torch.randn(settings.num_first, 1, generator=generator, dtype=torch.float64)
    width = _NEW_RANGE[1] - _NEW_RANGE[0]
    X_new = _NEW_RANGE[0] + width * torch.rand(settings.num_new, 1, generator=generator, dtype=torch.float64)
    grid = torch.linspace(*_RANGE, settings.grid_size, dtype=torch.float64).unsqueeze(-1)
    data = _FunctionData(X, true_function(X), X_new, true_function(X_new), grid)
    before, after = _exact(data) if method == "reference" else _sparse(data, method, settings.num_inducing)
    return {
        "x": rounded(grid.squeeze(-1)),
        "truth": rounded(true_function(grid)),
        "mean": [rounded(before.mean), rounded(after.mean)],
        "deviation": [rounded(each.covariance.diagonal().clamp_min(0.0).sqrt()) for each in (before, after)],
        "inputs": rounded(torch.cat([X, X_new]).squeeze(-1)),
        "targets": rounded(torch.cat([data.y, data.y_new])),
        "num_first": settings.num_first,
        "noise_variance": _NOISE_VARIANCE,
    }


def _exact(data: _FunctionData) -> tuple[ExactPrediction, ExactPrediction]:
    kernel = ScaleKernel(RBFKernel()).to(data.X)
    gp = fit_exact(data.X, data.y, kernel, mean=ZeroMean(), noise_variance=_NOISE_VARIANCE)
    return gp.predict(data.grid), gp.condition(data.X_new, data.y_new).predict(data.grid)


def _sparse(data: _FunctionData, method: str, num_inducing: int) -> tuple[ExactPrediction, ExactPrediction]:
    gp = fit(
        data.X,
        data.y,
        likelihood=Gaussian(_NOISE_VARIANCE, is_learned=False),
        kernel=ScaleKernel(RBFKernel()),
        mean=ZeroMean(),
        num_inducing=num_inducing,
        inducing="pivoted",
        priors=None,
    ).gp
    if method == "paper":
        none = (data.X[:0], data.y[:0])
        before, after = (
            predict_through_pseudo_data(gp, X, y, noise_variance=_NOISE_VARIANCE, at=data.grid)
            for X, y in (none, (data.X_new, data.y_new))
        )
        return before, after
    conditioned = gp.condition(data.X_new, data.y_new, noise_variance=_NOISE_VARIANCE)
    first, last = gp.predict(data.grid), conditioned.predict(data.grid)
    return ExactPrediction(first.mean, first.covariance), ExactPrediction(last.mean, last.covariance)


def _run_volatility(method: str, generator: torch.Generator, settings: ConditioningSettings) -> UnitOutcome:
    n = settings.num_first_returns
    returns = simulate_sabr(
        n + settings.num_new_returns, generator, volatility_of_volatility=settings.volatility_of_volatility
    )
    X = torch.arange(len(returns.values), dtype=torch.float64).unsqueeze(-1) / _RETURNS_PER_UNIT
    first = _fit_returns(X[:n], returns.values[:n], X, settings=settings)
    before = _score(first.gp, first, X, returns=returns, num_first=n)
    if method == "reference":
        everything = _fit_returns(X, returns.values, X, settings=settings)
        after = _score(everything.gp, everything, X, returns=returns, num_first=n)
    else:
        sites = "paper" if method == "paper" else "variational"
        new = first.gp.condition(X[n:], returns.values[n:], likelihood=first.likelihood, sites=sites)
        after = _score(new, first, X, returns=returns, num_first=n)
    return {
        "x": list(range(len(X))),
        "truth": rounded(returns.volatility),
        "inputs": list(range(len(X))),
        "targets": rounded(returns.values, num_digits=3),
        "num_first": n,
        **{name: [before[name], after[name]] for name in before},
    }


def _fit_returns(X: Tensor, y: Tensor, everywhere: Tensor, *, settings: ConditioningSettings) -> FitResult:
    num_inducing = settings.num_inducing_returns
    points = torch.linspace(0.0, float(everywhere.max()), num_inducing, dtype=torch.float64).unsqueeze(-1)
    return fit(
        X,
        y,
        likelihood=Volatility(),
        kernel=ScaleKernel(RBFKernel()),
        mean=ZeroMean(),
        num_inducing=num_inducing,
        inducing=points,
        learn_inducing=False,
        max_iterations=settings.max_iterations,
    )


def _score(
    gp: SparseGP | ConditionedGP, fitted: FitResult, X: Tensor, *, returns: Returns, num_first: int
) -> UnitOutcome:
    """Mean and standard deviation of the volatility, with errors on the first and on the new returns."""
    likelihood, prediction = fitted.likelihood, gp.predict(X)
    assert isinstance(likelihood, Volatility)
    variance = prediction.variance.clamp_min(0.0)
    mean = expectation(likelihood.scale, prediction.mean, variance, num_nodes=likelihood.num_nodes)
    square = likelihood.predictive_variance(prediction.mean, variance)
    errors = (mean - returns.volatility).square()
    losses = -likelihood.log_predictive_density(prediction.mean, variance, returns.values)
    parts = (slice(num_first), slice(num_first, None))
    return {
        "mean": rounded(mean),
        "deviation": rounded((square - mean.square()).clamp_min(0.0).sqrt()),
        "rmse": [rounded(float(errors[part].mean().sqrt())) for part in parts],
        "nll": [rounded(float(losses[part].mean())) for part in parts],
    }


STUDY = Study(
    name="conditioning",
    problems={
        "function": "A function without noise, seen around 0 and then on [2.5, 5.5]",
        "volatility": "Simulated returns with hidden volatility",
    },
    methods={
        "reference": "exact GP, or a fit to everything",
        "conditioned": "SVGP, conditioned",
        "paper": "SVGP, conditioned as in the paper",
    },
    settings=ConditioningSettings,
    run=run,
)
