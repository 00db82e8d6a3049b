"""Hyperparameters by the exact marginal likelihood of the space-time model on a few hundred rows."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import gpytorch
import numpy as np
import torch
from jaxtyping import Float
from scipy.linalg import lapack
from scipy.optimize import minimize

from streamgp.streams.kernels import ModuleKernel, slope_of, value_of
from streamgp.streams.prior import Prior

__all__ = ["Rows", "fit_prior", "negative_log_marginal", "prior_covariance"]

# Iterations from the last optimum; more move hyperparameters farther in one refit, and take longer.
_NUM_ITERATIONS = 40
# With more rows the default start is not tried beside the last optimum; larger makes early refits slower.
_FEW_ROWS = 150
# Bounds of all logarithms; wider lets a flat likelihood run away.
_BOUND = 9.0
# Least logarithm of the noise's variance; larger cannot follow streams of little noise, lower interpolates spikes.
_LEAST_LOG_NOISE = -11.0
_JITTER = 1e-8
_NUM_LOGS = 6


class Rows(NamedTuple):
    """Standardized rows: inputs, targets, when they were, and the variance of their noise in units of what is usual.

    Several classes are several questions, each with targets and noises of its own.
    """

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, "q n"]
    times: Float[np.ndarray, " n"]
    noises: Float[np.ndarray, "q n"]


def _hyperprior(prior: Prior, num_dims: int) -> tuple[Float[np.ndarray, " h"], Float[np.ndarray, " h"]]:
    """Return means and deviations of the logarithms; wider lets few rows say more than they know.

    That of the lengthscales is the one of the batch fits: it grows with the number of columns.
    """
    num_lengths = len(prior.lengthscales)
    length = math.sqrt(2.0) + 0.5 * math.log(max(num_dims, 1))
    rest = [0.0, math.log(300.0), math.log(0.1), math.log(300.0), math.log(0.1), -4.0]
    return np.r_[np.full(num_lengths, length), rest], np.r_[
        np.full(num_lengths, math.sqrt(3.0)), 1.5, 2.0, 2.0, 2.0, 2.0, 2.0
    ]


def _noise(prior: Prior) -> float:
    """Return the factor of the rows' noises, which is learned unless each row has a noise of its own."""
    return 1.0 if prior.has_sites else prior.noise_variance


def _apart(rows: Rows, *, is_timed: bool) -> Float[np.ndarray, "n n"]:
    n = len(rows.times)
    return np.abs(rows.times[:, None] - rows.times) if is_timed else np.zeros((n, n))


def prior_covariance(prior: Prior, rows: Rows, *, is_timed: bool = True) -> Float[np.ndarray, "n n"]:
    """Return the covariance of the latent values of rows."""
    apart = _apart(rows, is_timed=is_timed)
    function = prior.function_variance * prior.stream_kernel(rows.inputs, rows.inputs)
    within = function + prior.slope_variance * (rows.inputs @ rows.inputs.T)
    level = prior.level_variance * np.exp(-apart / prior.level_life)
    return np.asarray(np.exp(-apart / prior.function_life) * within + level)


def negative_log_marginal(
    theta: Float[np.ndarray, " h"],
    rows: Rows,
    squares: Float[np.ndarray, "d n n"],
    before: Prior,
    *,
    is_timed: bool = True,
) -> tuple[float, Float[np.ndarray, " h"]]:
    """Return the negative log posterior density of the hyperparameters, but for a constant, and its gradient.

    Args:
        theta: Logarithms, lengthscales first.
        rows: Rows.
        squares: Squared differences of each input.
        before: Prior with the kernel's family.
        is_timed: Whether function and level change with time.
    """
    n, d = rows.inputs.shape
    prior = before.from_log(theta)
    family = int(prior.stream_kernel.family)  # type: ignore[union-attr]
    weights = prior.lengthscales**-2.0
    square = np.tensordot(weights, squares, 1) if d else np.zeros((n, n))
    apart = _apart(rows, is_timed=is_timed)
    in_time = np.exp(-apart / prior.function_life)
    function = prior.function_variance * in_time * value_of(family, square)
    level = prior.level_variance * np.exp(-apart / prior.level_life)
    linear = prior.slope_variance * in_time * (rows.inputs @ rows.inputs.T)
    covariance = function + level + linear
    value, slope, by_noise = 0.0, np.zeros((n, n)), 0.0
    for y, noises in zip(rows.targets, rows.noises, strict=True):
        total = covariance.copy()
        total.flat[:: n + 1] += _noise(prior) * noises + _JITTER
        factor, failed = lapack.dpotrf(total, lower=1, clean=1)
        if failed:
            return 1e10, np.zeros_like(theta)
        inverse, _ = lapack.dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        alpha = inverse @ y
        value += 0.5 * float(y @ alpha) + float(np.log(np.diag(factor)).sum())
        part = 0.5 * (inverse - np.outer(alpha, alpha))
        slope += part
        by_noise += 0.0 if prior.has_sites else prior.noise_variance * float(np.diag(part) @ noises)
    along = slope * (prior.function_variance * in_time * slope_of(family, square))
    by_function, by_level, by_linear = slope * function, slope * level, slope * linear
    gradient = np.empty_like(theta)
    gradient[:d] = np.tensordot(squares, along, 2) * weights
    gradient[d] = by_function.sum()
    gradient[d + 1] = ((by_function + by_linear) * apart).sum() / prior.function_life
    gradient[d + 2] = by_level.sum()
    gradient[d + 3] = (by_level * apart).sum() / prior.level_life
    gradient[d + 4] = by_linear.sum()
    gradient[d + 5] = by_noise
    mean, deviation = _hyperprior(prior, d)
    z = (theta - mean) / deviation
    return value + 0.5 * float(z @ z), gradient + z / deviation


def fit_prior(
    rows: Rows,
    default: Prior,
    start: Prior | None = None,
    *,
    is_timed: bool = True,
    num_iterations: int = _NUM_ITERATIONS,
) -> tuple[Prior, float]:
    """Learn hyperparameters, from the last ones and, while rows are few, from the default ones.

    Args:
        rows: Rows.
        default: What is expected before there are rows to learn from.
        start: Last hyperparameters.
        is_timed: Whether function and level change with time.
        num_iterations: Most iterations.

    Returns:
        The hyperparameters, and by how many nats a row they are better than those at the start.
    """
    n, d = rows.inputs.shape
    first = default if start is None else start
    if isinstance(first.stream_kernel, ModuleKernel):
        objective, to_prior, begin = _module_objective(rows, first, is_timed=is_timed)
        low, high = np.full(len(begin), -np.inf), np.full(len(begin), np.inf)
        starts = [(begin, num_iterations)]
    else:
        differences = (rows.inputs[:, j : j + 1] - rows.inputs[:, j] for j in range(d))
        squares = np.stack([each**2 for each in differences]) if d else np.zeros((0, n, n))
        low, high = np.full(d + _NUM_LOGS, -_BOUND), np.full(d + _NUM_LOGS, _BOUND)
        to_prior, starts = first.from_log, [(first.log, num_iterations)]
        if start is not None and n <= _FEW_ROWS:
            starts.append((default.log, num_iterations // 2))

        def objective(theta: Float[np.ndarray, " h"]) -> tuple[float, Float[np.ndarray, " h"]]:
            return negative_log_marginal(theta, rows, squares, first, is_timed=is_timed)

    low[-_NUM_LOGS:], high[-_NUM_LOGS:], low[-1] = -_BOUND, _BOUND, _LEAST_LOG_NOISE
    if start is not None:
        starts[0] = (np.clip(starts[0][0], low + 0.1, high - 0.1), num_iterations)
    best, lowest = starts[0][0], math.inf
    for theta, iterations in starts:
        bounds = list(zip(low, high, strict=True))
        result = minimize(objective, theta, jac=True, method="L-BFGS-B", options={"maxiter": iterations}, bounds=bounds)
        if result.fun < lowest:
            best, lowest = result.x, float(result.fun)
    gain = math.inf if start is None else (objective(starts[0][0])[0] - lowest) / n
    return to_prior(best), gain


def _module_objective(
    rows: Rows, prior: Prior, *, is_timed: bool
) -> tuple[Callable[[Any], Any], Callable[[Any], Prior], Float[np.ndarray, " h"]]:
    """Return the objective for a kernel of the user's own, how to read a prior from its argument, and where to begin.

    The kernel's scale is its own, so that the function has variance one times it.
    """
    module = deepcopy(prior.kernel).double()  # type: ignore[union-attr]
    parameters = [each for each in module.parameters() if each.requires_grad]
    sizes = [each.numel() for each in parameters]
    X, times = torch.from_numpy(rows.inputs), torch.from_numpy(rows.times)
    targets, noises = torch.from_numpy(rows.targets), torch.from_numpy(rows.noises)
    apart = (times[:, None] - times).abs() * float(is_timed)
    mean, deviation = (torch.from_numpy(each) for each in _hyperprior(prior, X.shape[1]))

    def put(theta: Float[np.ndarray, " h"]) -> None:
        parts = np.split(theta, np.cumsum(sizes))[:-1]
        with torch.no_grad():
            for each, part in zip(parameters, parts, strict=True):
                each.copy_(torch.from_numpy(part).reshape(each.shape))

    def objective(theta: Float[np.ndarray, " h"]) -> tuple[float, Float[np.ndarray, " h"]]:
        put(theta)
        logs = torch.tensor(theta[-_NUM_LOGS:], requires_grad=True)
        _, function_life, level, level_life, slope, noise = logs.exp()
        with gpytorch.settings.lazily_evaluate_kernels(False):
            function: Any = module(X, X).to_dense()
        covariance = torch.exp(-apart / function_life) * (function + slope * X @ X.mT)
        covariance = covariance + level * torch.exp(-apart / level_life)
        factor = 1.0 if prior.has_sites else noise
        totals = covariance + torch.diag_embed(factor * noises + _JITTER)
        L, failed = torch.linalg.cholesky_ex(totals)
        if bool(failed.any()):
            return 1e10, np.zeros_like(theta)
        white = torch.linalg.solve_triangular(L, targets.unsqueeze(-1), upper=False)
        value = 0.5 * white.square().sum() + L.diagonal(dim1=-2, dim2=-1).log().sum()
        value = value + 0.5 * ((logs - mean) / deviation).square().sum()
        for _, owner, density, closure, _ in module.named_priors():
            value = value - density.log_prob(closure(owner)).sum()
        found = torch.autograd.grad(value, [*parameters, logs], allow_unused=True)
        gradient = [np.zeros(n) if g is None else g.numpy().ravel() for g, n in zip(found, [*sizes, 6], strict=True)]
        return float(value.detach()), np.concatenate(gradient)

    def to_prior(theta: Float[np.ndarray, " h"]) -> Prior:
        put(theta)
        return replace(prior.from_log(theta[-_NUM_LOGS:]), function_variance=1.0, kernel=deepcopy(module))

    begin = np.concatenate([each.detach().numpy().ravel() for each in parameters] + [prior.log])
    return objective, to_prior, begin
