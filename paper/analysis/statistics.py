"""Means, medians, intervals and paired differences over trials: seeds, which are independent."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom
from scipy.stats import t as student

__all__ = [
    "MIN_TRIALS_OF_MEDIANS",
    "Difference",
    "format_mean",
    "holm",
    "jackknife",
    "mean_and_error",
    "median_and_interval",
    "paired_difference",
    "standard_error",
]

LEVEL = 0.95
# An effect counts as one that would have been detected if four of five such experiments would detect it.
POWER = 0.8
# With fewer trials even the smallest and the largest enclose the median with less than 95 % probability.
MIN_TRIALS_OF_MEDIANS = 6


def mean_and_error(values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over the first axis, the trials, and half the width of its 95 % interval; of one trial that is NaN."""
    table = np.asarray(values, dtype=float)
    factor = _quantile(LEVEL, len(table))
    return np.asarray(table.mean(0)), np.asarray(factor * standard_error(table))


def standard_error(values: ArrayLike) -> NDArray[np.float64]:
    """Standard error of the mean over the first axis, the trials; of one trial it is NaN."""
    table = np.asarray(values, dtype=float)
    if len(table) < 2:
        return np.full(table.shape[1:], math.nan)
    return np.asarray(table.std(0, ddof=1) / math.sqrt(len(table)))


@final
@dataclass(frozen=True)
class Difference:
    """A mean of differences between two methods over the independent trials that they share.

    Attributes:
        mean: Mean difference.
        standard_error: Standard error of it; NaN if there is one trial.
        num_trials: Number of trials.
    """

    mean: float
    standard_error: float
    num_trials: int

    @property
    def error(self) -> float:
        """Half the width of the 95 % interval."""
        return _quantile(LEVEL, self.num_trials) * self.standard_error

    @property
    def detectable(self) -> float:
        """The true difference that four of five such experiments would tell from zero."""
        if self.num_trials < 2:
            return math.nan
        factor = float(student.ppf(POWER, self.num_trials - 1))
        return self.error + factor * self.standard_error

    @property
    def reversed(self) -> "Difference":
        """Second − first."""
        return Difference(-self.mean, self.standard_error, self.num_trials)

    def less(self, value: float) -> "Difference":
        """The difference with a value taken off its mean."""
        return Difference(self.mean - value, self.standard_error, self.num_trials)

    def p_value(self, value: float = 0.0) -> float:
        """Probability of a mean at least this far to either side if the true one were `value`; 1 for one trial."""
        if math.isnan(self.standard_error):
            return 1.0
        if self.standard_error == 0.0:
            return 1.0 if self.mean == value else 0.0
        return float(2.0 * student.sf(abs(self.mean - value) / self.standard_error, self.num_trials - 1))

    def __str__(self) -> str:
        low, high = self.mean - self.error, self.mean + self.error
        return f"{self.mean:+.3g} [{low:+.2g}, {high:+.2g}] over {self.num_trials} trials"


def paired_difference(first: ArrayLike, second: ArrayLike) -> Difference:
    """Difference first − second, trial by trial; both in the order of the same seeds."""
    differences = np.subtract(first, second)
    return Difference(float(differences.mean()), float(standard_error(differences)), len(differences))


def jackknife(statistic: Callable[[NDArray[np.int64]], float], num_trials: int) -> Difference:
    """A statistic of all trials with the standard error that leaving out each trial gives.

    Args:
        statistic: A function of the indices of the trials that are used.
        num_trials: Number of trials; with fewer than three the error is NaN.
    """
    trials = np.arange(num_trials)
    value = statistic(trials)
    if num_trials < 3:
        return Difference(value, math.nan, num_trials)
    parts = np.array([statistic(np.delete(trials, left_out)) for left_out in trials])
    spread = float(np.square(parts - parts.mean()).sum())
    return Difference(value, math.sqrt((num_trials - 1) / num_trials * spread), num_trials)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number by Holm's steps: below 5 % with a family-wise error of 5 %."""
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


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


def format_mean(values: Sequence[float], *, digits: int = 2) -> str:
    """A mean with half the width of its 95 % interval in brackets."""
    mean, error = mean_and_error(values)
    return f"{float(mean):.{digits}f} ({float(error):.{digits}f})"


def _quantile(level: float, num_trials: int) -> float:
    return float(student.ppf(0.5 + level / 2.0, num_trials - 1)) if num_trials > 1 else math.nan
