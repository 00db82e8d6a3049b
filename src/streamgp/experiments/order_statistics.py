"""Medians with intervals that assume nothing of the distribution."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

__all__ = ["MIN_TRIALS", "median_and_interval"]

# With fewer trials even the smallest and the largest enclose the median with less than 95 % probability.
MIN_TRIALS = 6


def median_and_interval(
    values: ArrayLike,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Median over the first axis, the trials, and the order statistics that enclose it with 95 % probability.

    The median lies between the $k$-th smallest and the $k$-th largest of $n$ values with probability
    $1 - 2 P(B < k)$, where $B$ is binomial with $n$ trials of probability one half; the largest such $k$ is taken.
    With fewer than six trials the range is returned, whose probability is lower.

    Args:
        values: One row for each trial.

    Returns:
        Medians, lower and upper ends.
    """
    ordered = np.sort(np.asarray(values, dtype=float), axis=0)
    n = len(ordered)
    # P(B < k) = cdf(k - 1) must not exceed 2.5 %.
    rank = max((k for k in range(1, math.ceil(n / 2)) if binom.cdf(k - 1, n, 0.5) <= 0.025), default=1)
    return np.asarray(np.median(ordered, axis=0)), np.asarray(ordered[rank - 1]), np.asarray(ordered[n - rank])
