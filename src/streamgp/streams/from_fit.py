"""Streams that begin with what a fit of rows without an order has learned."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel

from streamgp.streams.buffer import Units
from streamgp.streams.latent_forecasts import LatentForecast
from streamgp.streams.learner import StreamLearner
from streamgp.streams.observing import Observing, with_counts
from streamgp.streams.options import StreamOptions
from streamgp.streams.points import choose_points
from streamgp.streams.predictive import Forecast
from streamgp.streams.prior import Prior
from streamgp.streams.refit import Fitted, Snapshot, carry
from streamgp.streams.schedule import Schedule
from streamgp.streams.state import Belief
from streamgp.training import FitResult, fit
from streamgp.training.result import cast_process

__all__ = ["batch_forecast", "fit_rows", "learner_from_fit"]

# Variance of a level and of slopes that a fit does not have, in units of the noise; larger lets them move at once.
_UNMOVED = 1e-8
# Rows whose errors the scale of the noise remembers; see `NOISE_KEEP`.
_NOISE_ROWS = 34.0
# Weight of long-tailed errors and of experts without a function, of which a fit knows nothing.
_UNKNOWN = 1e-3
# Degrees of freedom at which Student's t is Gaussian to seven digits.
_GAUSSIAN_DEGREES = 1e7
# Share of the points' variance that may be lost where they are too many for a stream.
_LOST = 1e-6


def fit_rows(
    X: np.ndarray, y: np.ndarray, options: StreamOptions, total_count: np.ndarray | None, *, num_inducing: int | str
) -> FitResult:
    """Fit rows as `streamgp.fit` does by default, with the likelihood and the kernel of a stream."""
    is_gaussian = isinstance(options.likelihood, str) and options.likelihood == "gaussian"
    likelihood: Any = None if is_gaussian else options.plan().likelihood
    if likelihood is not None and total_count is not None:
        likelihood = with_counts(likelihood, total_count)
    result: FitResult = fit(
        X,
        y,
        likelihood=likelihood,
        kernel=_kernel(options.kernel, X.shape[1]),
        num_inducing=num_inducing if isinstance(num_inducing, str) else min(num_inducing, len(X)),
        standardize=True if is_gaussian else "inputs",
        generator=torch.Generator().manual_seed(0),
    )
    return result


def batch_forecast(result: FitResult, X: np.ndarray, total_count: np.ndarray | None) -> Any:
    """Return what a fit expects of the targets of rows."""
    latent = result.predict(X)
    mean, variance = np.asarray(latent.mean), np.asarray(latent.variance)
    weight, noise = np.ones((len(X), 1)), result.likelihood.gaussian_noise_variance
    if noise is None or result.scaling is None:
        counts = total_count
        return LatentForecast(mean[:, None], variance[:, None], weight, result.likelihood, counts)
    scale = np.sqrt(variance + float(noise.detach()) * float(result.scaling.target_scale) ** 2)
    return Forecast(mean[:, None], scale[:, None], np.full_like(weight, _GAUSSIAN_DEGREES), weight)


def learner_from_fit(
    results: Sequence[FitResult],
    options: StreamOptions,
    lower: np.ndarray,
    upper: np.ndarray,
    num_rows: int,
    *,
    num_classes: int = 0,
) -> StreamLearner:
    """Return a learner that believes what fits of one latent function each have learned.

    Args:
        results: One, or one for each class if there are more than two; of the same hyperparameters and points.
        options: Of the stream.
        lower: Least inputs.
        upper: Largest inputs.
        num_rows: Number of rows of the fit.
        num_classes: Number of classes; zero for other targets.
    """
    first, d = results[0], len(lower)
    learner = StreamLearner(d, options, num_classes=num_classes)
    gps = [cast_process(each.gp.process, torch.float64) for each in results]
    centers = np.array([float(gp.process.prior.mean(gp.inducing_points[:1])[0]) for gp in gps])
    family, lengthscales, variance = _stationary(gps[0].kernel)
    noise, is_sited = first.likelihood.gaussian_noise_variance, learner.plan.likelihood is not None
    prior = Prior(
        lengthscales,
        function_variance=variance,
        level_variance=_UNMOVED,
        slope_variance=_UNMOVED,
        noise_variance=1.0 if noise is None or is_sited else float(noise.detach()),
        kernel=family,
        has_sites=is_sited,
    ).still()
    observing = Observing(_detached(first.likelihood), centers) if is_sited else None
    fitted = Fitted(_units(first, d), prior, observing, learner.plan.experts)
    points = gps[0].inducing_points.numpy().copy()
    belief = fitted.new_belief(points)
    _fill(belief, fitted, gps, centers)
    most = max(options.most_points, 1)
    if len(points) > most:
        chosen = points[choose_points(points, fitted.dynamics().kernel, most=most, tolerance=_LOST)]
        fewer = fitted.new_belief(chosen)
        carry(Snapshot(fitted, belief), fewer, fitted)
        belief = fewer
    learner.fitted, learner.dynamics, learner.belief = fitted, fitted.dynamics(), belief
    learner.anchor = Snapshot(fitted, belief.copy())
    learner.lower, learner.upper = np.array(lower, dtype=float), np.array(upper, dtype=float)
    learner.num_seen = learner.num_since_start = learner.clock = num_rows
    belief.clock[:] = num_rows
    learner.anchor.belief.clock[:] = num_rows
    learner.schedule = Schedule().after(
        max(num_rows, options.warmup), math.inf, refit=options.refit, warmup=options.warmup
    )
    return learner


def _fill(belief: Belief, fitted: Fitted, gps: Sequence[Any], centers: np.ndarray) -> None:
    """Write what fits believe of the function at the points, with experts that trust it alike."""
    p, d = belief.points.shape
    W, unit, q = belief.whitening[:p, :p], fitted.prior.unit, len(gps)
    latent = [gp.predict(gp.inducing_points, covariance=True) for gp in gps]
    for f in range(len(belief.mean)):
        each, center = latent[f % q], centers[f % q]
        has_function = fitted.experts[f // q].has_function
        belief.covariance[f, : 1 + d, : 1 + d] = np.eye(1 + d) * _UNMOVED
        if fitted.observing is None:
            belief.mean[f, 0] = center
        if has_function:
            belief.mean[f, 1 + d :] = W @ (each.mean.detach().numpy() - center)
            covariance = W @ each.covariance.detach().numpy() @ W.T / unit
            belief.covariance[f, 1 + d :, 1 + d :] = 0.5 * (covariance + covariance.T)
    trusted = np.array([1.0 if each.has_function else _UNKNOWN for each in fitted.experts])[:, None]
    tails = np.array([[1.0, _UNKNOWN]])[:, : belief.near.shape[1]]
    weights = trusted * tails
    belief.near[:] = belief.far[:] = np.log(weights / weights.sum())
    belief.shape[:] = 0.5 * _NOISE_ROWS
    belief.rate[:] = belief.shape * fitted.prior.noise_variance


def _units(result: FitResult, num_dims: int) -> Units:
    scaling, plain = result.scaling, Units.plain(num_dims)
    if scaling is None:
        return plain
    scaling = scaling.double()
    return replace(
        plain,
        input_mean=scaling.input_shift.numpy().copy(),
        input_scale=scaling.input_scale.numpy().copy(),
        target_mean=float(scaling.target_shift),
        target_scale=float(scaling.target_scale),
    )


def _detached(likelihood: Any) -> Any:
    return likelihood.with_learnable({name: each.detach().double() for name, each in likelihood.learnable().items()})


def _stationary(kernel: Any) -> tuple[int | Kernel, np.ndarray, float]:
    """Return the family, lengthscales and variance of a kernel; others as they are, with no lengthscales."""
    base = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
    families = {2.5: 0, 1.5: 1, 0.5: 2}
    if isinstance(base, MaternKernel) and base.nu in families and base.active_dims is None:
        family = families[base.nu]
    elif type(base) is RBFKernel and base.active_dims is None:
        family = 3
    else:
        return kernel, np.zeros(0), 1.0
    variance = float(kernel.outputscale.detach()) if isinstance(kernel, ScaleKernel) else 1.0
    return family, base.lengthscale.detach().double().numpy().ravel().copy(), variance


def _kernel(kernel: Any, num_dims: int) -> Any:
    """Return a kernel of a stream as fits take it."""
    if not isinstance(kernel, str):
        return kernel
    if kernel == "rbf":
        return ScaleKernel(RBFKernel(ard_num_dims=num_dims)).double()
    nu = {"matern-5/2": 2.5, "matern-3/2": 1.5, "matern-1/2": 0.5}[kernel]
    return ScaleKernel(MaternKernel(nu, ard_num_dims=num_dims)).double()
