"""What rows of two classes need of the probit curve, in NumPy: for so few numbers torch takes several times as long."""

import math

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from streamgp.likelihoods import AbstractLikelihood

__all__ = ["is_probit", "log_probability", "moment_sites", "probability"]

_ROOT_HALF, _ROOT_TWO_OVER_PI = math.sqrt(0.5), math.sqrt(2.0 / math.pi)


def is_probit(likelihood: AbstractLikelihood) -> bool:
    """Whether outcomes are two classes, with the normal distribution function of the latent value."""
    is_one = likelihood.num_inputs == likelihood.num_latents == 1
    return is_one and likelihood.outcome_kind == "class" and likelihood.link == "probit"


def probability(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    r"""The predictive probability of 1, $\Phi(m / \sqrt{1 + v})$."""
    return np.asarray(ndtr(mean / np.sqrt(1.0 + variance)))


def log_probability(mean: np.ndarray, variance: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The logarithm of the predictive probability of outcomes 0 and 1."""
    return np.asarray(log_ndtr((2.0 * y - 1.0) * mean / np.sqrt(1.0 + variance)))


def moment_sites(
    mean: np.ndarray, variance: np.ndarray, y: np.ndarray, least_precision: float
) -> tuple[np.ndarray, np.ndarray]:
    r"""The targets and noise of Gaussian observations that have the effect of outcomes on beliefs of single values.

    With the derivatives $g$ and $-h$ of $\log \Phi(\pm m / \sqrt{1 + v})$, an observation of $m + g / h$ with noise
    $1 / h - v$ gives the moments of the exact posterior. With $\lambda = \varphi(z) / \Phi(z)$, the derivatives of
    $\log \Phi(z)$ are $\lambda$ and $-\lambda (z + \lambda)$.
    """
    scale = (2.0 * y - 1.0) / np.sqrt(1.0 + variance)
    z = scale * mean
    with np.errstate(over="ignore"):
        ratio = _ROOT_TWO_OVER_PI / erfcx(-_ROOT_HALF * z)  # zero where that function overflows
    curvature = np.maximum(scale * scale * ratio * (z + ratio), least_precision)
    return mean + scale * ratio / curvature, np.maximum(1.0 / curvature - variance, least_precision)
