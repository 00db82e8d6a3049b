"""Inducing points: where the filters hold what they know of the function."""

import math

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cholesky, solve_triangular

from streamgp.streams.constants import NEAR_PRIOR, OPEN_NATS
from streamgp.streams.kernels import StreamKernel
from streamgp.streams.state import Belief

__all__ = ["choose_points", "is_moving", "slack_of", "tolerance_of", "whitening_of"]

_JITTER = 1e-8
# Recent rows that are looked at to see whether points should move along; more notice later and more surely.
_NUM_RECENT = 64
# Latest rows of which half stand as points for the other half; more look farther back.
_NUM_TESTED = 16
# Nats a row by which recent points must help more than old rows lose; larger exchanges points less readily.
_MOVED_NATS = 0.1


def whitening_of(points: Float[np.ndarray, "p d"], kernel: StreamKernel) -> Float[np.ndarray, "p p"]:
    """Return W with K⁻¹ = WᵀW for the kernel matrix of the points."""
    p = len(points)
    K = kernel(points, points)
    K.flat[:: p + 1] = kernel.diagonal(points) * (1.0 + _JITTER)
    return solve_triangular(cholesky(K, lower=True), np.eye(p), lower=True)


def slack_of(
    inputs: Float[np.ndarray, "n d"],
    points: Float[np.ndarray, "p d"],
    whitening: Float[np.ndarray, "p p"],
    kernel: StreamKernel,
) -> Float[np.ndarray, " n"]:
    """Return the share of the function's variance that points leave open at inputs."""
    features = whitening @ kernel(points, inputs)
    return np.maximum(kernel.diagonal(inputs) - (features * features).sum(0), 0.0)


def tolerance_of(function_variance: float) -> float:
    """Return the slack at which a row leaves `OPEN_NATS` open; the variance is in units of the noise's."""
    return math.expm1(2.0 * OPEN_NATS) / max(function_variance, 1e-9)


def choose_points(
    inputs: Float[np.ndarray, "n d"], kernel: StreamKernel, *, most: int, tolerance: float
) -> Int[np.ndarray, " p"]:
    """Choose inputs greedily, each the one that the others leave most open, until none is above the tolerance."""
    most = min(most, len(inputs))
    slack, rows, chosen = kernel.diagonal(inputs), np.zeros((most, len(inputs))), list[int]()
    least = 1e-6 * float(slack.max())
    for j in range(most):
        i = int(slack.argmax())
        if slack[i] < max(tolerance, least) and chosen:
            break
        chosen.append(i)
        rows[j] = (kernel(inputs[i : i + 1], inputs)[0] - rows[:j, i] @ rows[:j]) / math.sqrt(max(slack[i], 1e-300))
        slack = np.maximum(slack - rows[j] ** 2, 0.0)
        slack[i] = 0.0
    return np.array(chosen, dtype=int)


def is_moving(
    inputs: Float[np.ndarray, "n d"],
    belief: Belief,
    kernel: StreamKernel,
    function_variance: float,
) -> bool:
    """Tell whether points should move along with the rows, and measure how much rows would miss each point.

    Half of the latest rows, as points in place of the least used, must open the other half by more than old rows lose.
    In a table whose rows have no order they never do; along a time column they do.
    """
    n, p = len(inputs), int(belief.num_points[0])
    if n < 2 * _NUM_RECENT:
        return False
    recent, old = inputs[n - _NUM_RECENT :], inputs[: n - _NUM_RECENT : max(1, n // _NUM_RECENT)]
    points, whitening = belief.points[:p], belief.whitening[:p, :p]

    def missed(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " p"]:
        features = whitening @ kernel(points, rows)
        without = (whitening.T @ features) ** 2 / (whitening**2).sum(0)[:, None]
        left = 1.0 + function_variance * np.maximum(kernel.diagonal(rows) - (features * features).sum(0), 0.0)
        return 0.5 * np.log1p(function_variance * without / left).mean(1)

    def left_open(rows: Float[np.ndarray, "n d"], chosen: Float[np.ndarray, "p d"]) -> float:
        slack = slack_of(rows, chosen, whitening_of(chosen, kernel), kernel)
        return float(0.5 * np.log1p(function_variance * slack).mean())

    belief.use[:p] = NEAR_PRIOR * missed(recent) + (1.0 - NEAR_PRIOR) * missed(old)
    latest = recent[-_NUM_TESTED:]
    test, candidates = latest[::2], latest[1::2]
    is_latest = (points[:, None] == latest).all(-1).any(1)
    order = np.argsort(belief.use[:p] + np.where(is_latest, np.inf, 0.0), kind="stable")[: p - int(is_latest.sum())]
    before = points[order]
    after = np.vstack([candidates, points[order[max(len(candidates) - int(is_latest.sum()), 0) :]]])
    after = after[choose_points(after, kernel, most=p, tolerance=1e-6)]
    helped = left_open(test, before) - left_open(test, after)
    lost = left_open(old, after) - left_open(old, before)
    return helped > lost + _MOVED_NATS
