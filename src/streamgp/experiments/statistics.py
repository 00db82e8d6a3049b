"""Means, errors and paired differences over trials."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Difference", "format_mean", "mean_and_error", "paired_difference"]


def mean_and_error(values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over the first axis, the trials, and two standard errors; of one trial the error is NaN."""
    table = np.asarray(values, dtype=float)
    if len(table) < 2:
        return np.asarray(table.mean(0)), np.full(table.shape[1:], math.nan)
    return np.asarray(table.mean(0)), np.asarray(2.0 * table.std(0, ddof=1) / math.sqrt(len(table)))


@final
@dataclass(frozen=True)
class Difference:
    """A mean of differences between two methods over the trials that they share.

    Attributes:
        mean: Mean difference.
        error: Two standard errors of it.
        num_trials: Number of trials.
    """

    mean: float
    error: float
    num_trials: int

    @property
    def is_positive(self) -> bool:
        """Whether the mean is above zero by more than its error."""
        return self.mean > self.error

    @property
    def is_negative(self) -> bool:
        """Whether the mean is below zero by more than its error."""
        return self.mean < -self.error

    def __str__(self) -> str:
        return f"{self.mean:+.3g} ± {self.error:.2g} over {self.num_trials} trials"


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Difference first − second, trial by trial; both in the order of the same seeds."""
    differences = np.subtract(first, second)
    mean, error = mean_and_error(differences)
    return Difference(float(mean), float(error), len(differences))


def format_mean(values: Sequence[float], *, digits: int = 2) -> str:
    """A mean with two standard errors in brackets, as the paper prints them."""
    mean, error = mean_and_error(values)
    return f"{float(mean):.{digits}f} ({float(error):.{digits}f})"
