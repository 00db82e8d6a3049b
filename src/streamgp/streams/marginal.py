"""Hyperparameters by the exact marginal likelihood of the space-time model on a few hundred rows."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack
from scipy.optimize import minimize

from streamgp.streams.prior import Prior

__all__ = ["Rows", "fit_prior", "negative_log_marginal"]

# Iterations from the last optimum; more move hyperparameters farther in one refit, and take longer.
_NUM_ITERATIONS = 40
# With more rows the default start is not tried beside the last optimum; larger makes early refits slower.
_FEW_ROWS = 150
# Bounds of all logarithms; wider lets a flat likelihood run away.
_BOUND = 9.0
# Least logarithm of the noise's variance; larger cannot follow streams of little noise, lower interpolates spikes.
_LEAST_LOG_NOISE = -11.0
_JITTER = 1e-8
_SQRT5 = math.sqrt(5.0)


class Rows(NamedTuple):
    """Standardized rows: inputs, targets, when they were, and the variance of their noise in units of what is usual."""

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, " n"]
    times: Float[np.ndarray, " n"]
    noises: Float[np.ndarray, " n"]


def _hyperprior(num_dims: int) -> tuple[Float[np.ndarray, " h"], Float[np.ndarray, " h"]]:
    """Return means and deviations of the logarithms; wider lets few rows say more than they know.

    That of the lengthscales is the one of the batch fits: it grows with the number of columns.
    """
    length = math.sqrt(2.0) + 0.5 * math.log(max(num_dims, 1))
    mean = np.r_[np.full(num_dims, length), 0.0, math.log(300.0), math.log(0.1), math.log(300.0), math.log(0.1), -4.0]
    return mean, np.r_[np.full(num_dims, math.sqrt(3.0)), 1.5, 2.0, 2.0, 2.0, 2.0, 2.0]


def negative_log_marginal(
    theta: Float[np.ndarray, " h"], rows: Rows, squares: Float[np.ndarray, "d n n"], *, is_timed: bool = True
) -> tuple[float, Float[np.ndarray, " h"]]:
    """Return the negative log posterior density of the hyperparameters, but for a constant, and its gradient.

    Args:
        theta: Logarithms, lengthscales first.
        rows: Rows.
        squares: Squared differences of each input.
        is_timed: Whether function and level change with time.
    """
    n, d = rows.inputs.shape
    prior = Prior.from_log(theta)
    weights = prior.lengthscales**-2.0
    r = _SQRT5 * np.sqrt(np.tensordot(weights, squares, 1)) if d else np.zeros((n, n))
    falling = np.exp(-r)
    apart = np.abs(rows.times[:, None] - rows.times) if is_timed else np.zeros((n, n))
    in_time = np.exp(-apart / prior.function_life)
    function = prior.function_variance * in_time * falling * (1.0 + r + r * r / 3.0)
    level = prior.level_variance * np.exp(-apart / prior.level_life)
    linear = prior.slope_variance * in_time * (rows.inputs @ rows.inputs.T)
    covariance = function + level + linear
    covariance.flat[:: n + 1] += prior.noise_variance * rows.noises + _JITTER
    factor, failed = lapack.dpotrf(covariance, lower=1, clean=1)
    if failed:
        return 1e10, np.zeros_like(theta)
    inverse, _ = lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    alpha = inverse @ rows.targets
    value = 0.5 * float(rows.targets @ alpha) + float(np.log(np.diag(factor)).sum())
    slope = 0.5 * (inverse - np.outer(alpha, alpha))
    along = slope * (prior.function_variance * 5.0 / 3.0 * in_time * falling * (1.0 + r))
    by_function, by_level, by_linear = slope * function, slope * level, slope * linear
    gradient = np.empty_like(theta)
    gradient[:d] = np.tensordot(squares, along, 2) * weights
    gradient[d] = by_function.sum()
    gradient[d + 1] = ((by_function + by_linear) * apart).sum() / prior.function_life
    gradient[d + 2] = by_level.sum()
    gradient[d + 3] = (by_level * apart).sum() / prior.level_life
    gradient[d + 4] = by_linear.sum()
    gradient[d + 5] = prior.noise_variance * float(np.diag(slope) @ rows.noises)
    mean, deviation = _hyperprior(d)
    z = (theta - mean) / deviation
    return value + 0.5 * float(z @ z), gradient + z / deviation


def fit_prior(rows: Rows, start: Prior | None = None, *, is_timed: bool = True) -> tuple[Prior, float]:
    """Learn hyperparameters, from the last ones and, while rows are few, from the default ones.

    Returns:
        The hyperparameters, and by how many nats a row they are better than those at the start.
    """
    n, d = rows.inputs.shape
    squares = (
        np.stack([(rows.inputs[:, j : j + 1] - rows.inputs[:, j]) ** 2 for j in range(d)]) if d else np.zeros((0, n, n))
    )
    bounds = [(-_BOUND, _BOUND)] * (d + 5) + [(_LEAST_LOG_NOISE, _BOUND)]
    low, high = np.array(bounds).T
    default = Prior.default(d).log
    starts = [(default, _NUM_ITERATIONS)]
    if start is not None:
        starts = [(np.clip(start.log, low + 0.1, high - 0.1), _NUM_ITERATIONS)]
        starts += [(default, _NUM_ITERATIONS // 2)] if n <= _FEW_ROWS else []
    best, lowest, gain = default, math.inf, math.inf
    for theta, iterations in starts:
        result = (
            minimize(
                negative_log_marginal,
                theta,
                args=(rows, squares),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": iterations},
                bounds=bounds,
            )
            if is_timed
            else minimize(
                lambda theta: negative_log_marginal(theta, rows, squares, is_timed=False),
                theta,
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": iterations},
                bounds=bounds,
            )
        )
        if result.fun < lowest:
            best, lowest = result.x, float(result.fun)
    if start is not None:
        gain = (negative_log_marginal(starts[0][0], rows, squares, is_timed=is_timed)[0] - lowest) / n
    return Prior.from_log(best), gain
