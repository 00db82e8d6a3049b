"""Targets that the function of a stream has no part in, and how to tell them from a function that has changed."""

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float
from scipy.special import expit

__all__ = ["Outliers", "Plausibility"]

# What is expected where none were found: their share, and their variance in units of that of the targets.
_LEAST_SHARE, _USUAL_VARIANCE = 0.002, 25.0
# The most that are expected: outliers are no rule.
_LARGEST_SHARE = 0.3
# What one row counts for in the share of outliers.
_SHARE_RATE = 0.01
# A run of outliers that is less probable is a change. What an expected target says against one, in nats.
_CHANGE, _EXPECTED = -math.log(1e-5), 1.5
# An outlier is never quite sure.
_LEAST_PLAUSIBILITY = 1e-9


class Plausibility(NamedTuple):
    """How far targets tell of the function.

    Attributes:
        by_expert: Probabilities that they are no outliers, or one where a run of outliers is a change.
        overall: The same for all outputs of a row, by all experts together.
    """

    by_expert: Float[np.ndarray, "e c n"]
    overall: Float[np.ndarray, " n"]


@final
@dataclass(frozen=True, eq=False)
class Outliers:
    r"""How many targets are outliers, and how far they lie; a frozen value.

    A target is $f(x) + \varepsilon$, and with a small probability a wide Gaussian variable is added to it. Outliers are
    independent of each other, so that many in a row are none: the function has changed, and is to be followed.

    Attributes:
        share: The probability of an outlier; zero where none are expected.
        variance: Of what is added, in the model's units.
        surprise: For each expert and output, how improbable the latest run of outliers is, in nats.
    """

    share: float
    variance: float
    surprise: Float[np.ndarray, "e c"]

    @property
    def found_variance(self) -> float:
        """What outliers add to the variance of a target, but for those that are expected where none were found."""
        return max(self.share - _LEAST_SHARE, 0.0) * self.variance

    @classmethod
    def none(cls, num_experts: int, num_outputs: int) -> "Outliers":
        """Where none are expected."""
        return cls(0.0, 0.0, np.zeros((num_experts, num_outputs)))

    def found(self, share: float, variance: float) -> "Outliers":
        """After rows were searched for outliers; where there were none, there still may be some."""
        if share == 0.0:
            variance = _USUAL_VARIANCE
        return Outliers(max(share, _LEAST_SHARE), variance, self.surprise)

    def watched(
        self,
        log_plain: Float[np.ndarray, "e c n"],
        log_wide: Float[np.ndarray, "e c n"],
        weights: Float[np.ndarray, " e"],
    ) -> tuple[Plausibility, "Outliers"]:
        """How far targets are to be believed, and what is expected of those after them.

        Args:
            log_plain: By each expert, the log density of the targets, jointly with being no outliers.
            log_wide: The same jointly with being outliers.
            weights: Of the experts.
        """
        expected = np.maximum(expit(log_plain - log_wide), _LEAST_PLAUSIBILITY)
        improbable, surprise, by_expert = -math.log(self.share), self.surprise, np.empty_like(expected)
        for index in range(expected.shape[-1]):
            p = expected[..., index]
            surprise = surprise + (1.0 - p) * improbable - p * _EXPECTED
            surprise = np.minimum(np.maximum(surprise, 0.0), 2.0 * _CHANGE)
            by_expert[..., index] = np.where(surprise < _CHANGE, p, 1.0)
        share = self.share
        for p in _mixed(weights, expected).tolist():
            share += _SHARE_RATE * (1.0 - p - share)
        after = Outliers(min(max(share, _LEAST_SHARE), _LARGEST_SHARE), self.variance, surprise)
        return Plausibility(by_expert, _mixed(weights, by_expert)), after


def _mixed(weights: Float[np.ndarray, " e"], plausible: Float[np.ndarray, "e c n"]) -> Float[np.ndarray, " n"]:
    return np.asarray(np.minimum.reduce(np.add.reduce(weights[:, None, None] * plausible)))
