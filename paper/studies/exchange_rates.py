"""Sixty days of an exchange rate, one by one: do inducing points forget the first twenty?"""

from dataclasses import dataclass
from typing import final

import torch
from gpytorch.kernels import SpectralMixtureKernel
from gpytorch.means import ConstantMean
from torch import Tensor

from paper.baselines.absorbing import absorb_row
from paper.datasets import load_exchange_rates
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.conditioning import SparseGP
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training import FitResult, fit

__all__ = ["STUDY", "ExchangeRatesSettings"]


@final
@dataclass(frozen=True)
class ExchangeRatesSettings:
    """Settings of the series.

    Attributes:
        num_first: Days of the first fit.
        num_days: Days in all.
        num_inducing: Number of inducing points.
        num_mixtures: Components of the spectral mixture kernel.
        refit_every: Days after which hyperparameters are learned anew, from these days and the belief before them.
        marks: Days after which predictions are kept.
        grid_size: Places at which they are kept.
    """

    num_first: int
    num_days: int
    num_inducing: int
    num_mixtures: int
    refit_every: int
    marks: tuple[int, ...]
    grid_size: int


def run(problem: str, method: str, seed: int, settings: ExchangeRatesSettings) -> UnitOutcome:
    """Learn the series by a policy of inducing points.

    Returns:
        `inputs` and `targets`; at each of `marks` the `mean` and `deviation` of observations on the `grid`, and the
        inducing `points`; and after each of `days` the `rmse_first` and `nll_first` on the days of the first fit and
        the `rmse_all` on all days so far.
    """
    series = load_exchange_rates(num_days=settings.num_days)
    X, y, first = series.x.unsqueeze(-1), series.y, settings.num_first
    grid = torch.linspace(float(X.min()), float(X.max()), settings.grid_size, dtype=torch.float64).unsqueeze(-1)
    generator = torch.Generator().manual_seed(seed)
    fitted = _first_fit(X[:first], y[:first], settings)
    outcome = _empty_outcome(X, y, grid)
    gp = anchor = fitted.gp
    for day in range(first, settings.num_days + 1):
        if day > first:
            row = slice(day - 1, day)
            gp = absorb_row(gp, X[row], y[row], policy=method, noise_variance=_noise(fitted), generator=generator)
            if (day - first) % settings.refit_every == 0:
                latest = slice(day - settings.refit_every, day)
                fitted = _refit(X[latest], y[latest], gp, anchor=anchor, likelihood=fitted.likelihood)
                gp = anchor = fitted.gp
        _note_errors(outcome, gp, X[:day], y=y[:day], fitted=fitted, num_first=first)
        if day in settings.marks:
            _note_prediction(outcome, gp, grid, day=day, noise_variance=_noise(fitted))
    return outcome


def _first_fit(X: Tensor, y: Tensor, settings: ExchangeRatesSettings) -> FitResult:
    return fit(
        X,
        y,
        kernel=SpectralMixtureKernel(num_mixtures=settings.num_mixtures),
        mean=ConstantMean(),
        num_inducing=settings.num_inducing,
        inducing="pivoted",
        learn_inducing=False,
    )


def _refit(X: Tensor, y: Tensor, gp: SparseGP, *, anchor: SparseGP, likelihood: AbstractLikelihood) -> FitResult:
    """Hyperparameters anew, from the latest days and the belief about those before; the inducing points stay."""
    return fit(
        X,
        y,
        start=gp,
        likelihood=likelihood,
        carried=anchor,
        num_inducing=gp.num_inducing,
        inducing=gp.inducing_points,
        learn_inducing=False,
    )


def _noise(fitted: FitResult) -> float:
    noise = fitted.likelihood.gaussian_noise_variance
    assert noise is not None
    return float(noise)


def _empty_outcome(X: Tensor, y: Tensor, grid: Tensor) -> UnitOutcome:
    names = ("marks", "mean", "deviation", "points", "days", "rmse_first", "nll_first", "rmse_all")
    data = {"inputs": rounded(X.squeeze(-1)), "targets": rounded(y), "grid": rounded(grid.squeeze(-1))}
    return {**data, **{name: [] for name in names}}


def _note_errors(
    outcome: UnitOutcome, gp: SparseGP, X: Tensor, *, y: Tensor, fitted: FitResult, num_first: int
) -> None:
    prediction = gp.predict(X)
    errors = (prediction.mean - y).square()
    losses = -fitted.likelihood.log_predictive_density(prediction.mean, prediction.variance.clamp_min(0.0), y)
    outcome["days"].append(len(y))
    outcome["rmse_first"].append(rounded(float(errors[:num_first].mean().sqrt())))
    outcome["nll_first"].append(rounded(float(losses[:num_first].mean())))
    outcome["rmse_all"].append(rounded(float(errors.mean().sqrt())))


def _note_prediction(outcome: UnitOutcome, gp: SparseGP, grid: Tensor, *, day: int, noise_variance: float) -> None:
    prediction = gp.predict(grid)
    outcome["marks"].append(day)
    outcome["mean"].append(rounded(prediction.mean))
    outcome["deviation"].append(rounded((prediction.variance.clamp_min(0.0) + noise_variance).sqrt()))
    outcome["points"].append(rounded(gp.inducing_points.squeeze(-1)))


STUDY = Study(
    name="exchange_rates",
    problems={"cad": "Canadian dollars per US dollar, the first 60 trading days of 2007"},
    methods={"pivoted": "pivoted Cholesky", "resample": "resampling", "fixed": "fixed points"},
    settings=ExchangeRatesSettings,
    run=run,
    datasets=("exchange_rates",),
)
