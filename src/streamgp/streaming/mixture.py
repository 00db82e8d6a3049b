"""Weights of experts by how well they predicted, and the scale of their errors, both learned causally."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float

from streamgp.streaming.outliers import Outliers, Plausibility

__all__ = ["Mixture"]

# The share of weight that is spread evenly over all experts with each row, as each may become the best one.
_SWITCHING_RATE = 0.005
# What a row fades by, with each later one, in how good experts were in the long run.
_LASTING_RATE = 0.001
# What one row counts for in the scale of errors, in the long run: the latest 33 rows or so, or the latest 200. A scale
# that moves is followed by the former; one that stays is better known by the latter. They are weighed like experts.
_SCALE_RATES = (0.03, 0.005)
_KEPT = 1.0 - np.array(_SCALE_RATES)[:, None, None]
_RATE_SWITCHING = 0.003
# The least that variances are multiplied with: targets that do not vary have errors of zero.
_LEAST_SCALE = 1e-6
# The most that an outlier counts for, relative to the scale: nothing, and errors that grow would all be outliers.
_MOST_OF_OUTLIER = 9.0
# Degrees of freedom of the first prediction, and the most: the scale of errors is never known well.
_FIRST_DEGREES, _MOST_DEGREES = 3.0, 30.0


@final
@dataclass(frozen=True, eq=False)
class Mixture:
    r"""Which experts are to be believed, and how far; a frozen value.

    Weights are products of predictive densities, with a small rate of switching. Squared standardized errors of each
    expert, which fade out, tell the scale of its variances: predictions of real targets are Student-t with as many
    degrees of freedom as errors count, so wide at the start. They fade out at several rates, which are weighed by how
    well they predicted, too.

    Attributes:
        log_weights: Logarithms of the weights, which add up to one.
        lasting_log_weights: The same in the long run, without switching; they count for inputs that the stream left.
        num_errors: How many errors count, by rate.
        squared_errors: Their sum, outliers weighted down.
        rate_weights: Weights of the rates.
        outliers: Targets to be expected that the experts have no part in.
        is_scaled: Whether the scale of errors is learned; if not, predictions are Gaussian, as the beliefs say.
    """

    log_weights: Float[np.ndarray, " e"]
    lasting_log_weights: Float[np.ndarray, " e"]
    num_errors: Float[np.ndarray, "r 1 1"]
    squared_errors: Float[np.ndarray, "r e c"]
    rate_weights: Float[np.ndarray, "r e c"]
    outliers: Outliers
    is_scaled: bool = True

    @classmethod
    def even(cls, num_experts: int, num_outputs: int, *, is_scaled: bool = True) -> "Mixture":
        """Before any row."""
        weights = np.full(num_experts, -math.log(num_experts))
        nothing = np.zeros((len(_SCALE_RATES), num_experts, num_outputs))
        return cls(
            weights,
            weights,
            nothing[:, :1, :1].copy(),
            nothing,
            np.full_like(nothing, 1.0 / len(nothing)),
            Outliers.none(num_experts, num_outputs),
            is_scaled,
        )

    @cached_property
    def weights(self) -> Float[np.ndarray, " e"]:
        """The weights."""
        return np.asarray(np.exp(self.log_weights))

    @cached_property
    def degrees(self) -> float:
        """Degrees of freedom of predictions; infinite for Gaussian ones."""
        if not self.is_scaled:
            return math.inf
        return _degrees(self.num_errors)

    @cached_property
    def scale(self) -> Float[np.ndarray, "e c"]:
        """What variances are multiplied with."""
        if not self.is_scaled:
            return np.ones_like(self.squared_errors[0])
        return np.asarray(np.add.reduce(self.rate_weights * self._rate_scales))

    @cached_property
    def _rate_scales(self) -> np.ndarray:
        """The same by each rate `(r, e, c)`."""
        return _scales(self.squared_errors, self.num_errors)

    def expecting(self, outliers: Outliers) -> "Mixture":
        """The same with other outliers."""
        if outliers is self.outliers:
            return self
        weights = self.log_weights, self.lasting_log_weights
        return Mixture(*weights, self.num_errors, self.squared_errors, self.rate_weights, outliers, self.is_scaled)

    def judged(self, log_densities: Float[np.ndarray, "e n"], plausible: Plausibility | None = None) -> "Mixture":
        """Weigh experts by how well they predicted some rows; by outliers nobody is judged.

        Args:
            log_densities: Of the rows, by each expert.
            plausible: How far they tell of the function; None for altogether.
        """
        e = len(self.log_weights)
        if e == 1:
            return self
        log_weights, lasting = self.log_weights, self.lasting_log_weights
        densities = log_densities if plausible is None else plausible.overall * log_densities
        for row in densities.T:
            lasting = (1.0 - _LASTING_RATE) * lasting + (row - np.maximum.reduce(row))
            posterior = log_weights + row
            posterior = np.exp(posterior - np.maximum.reduce(posterior))
            share = (1.0 - _SWITCHING_RATE) / np.add.reduce(posterior)
            log_weights = np.log(share * posterior + _SWITCHING_RATE / e)
        scales = self.num_errors, self.squared_errors, self.rate_weights, self.outliers
        other = Mixture(log_weights, lasting, *scales, self.is_scaled)
        if "_rate_scales" in self.__dict__:
            other.__dict__["_rate_scales"] = self._rate_scales
        return other

    def calibrated(self, squares: Float[np.ndarray, "e c n"], plausible: Plausibility | None = None) -> "Mixture":
        """Learn the scale of errors from squared standardized ones; those of outliers say little.

        Args:
            squares: The squares.
            plausible: How far they tell of the function; None for altogether.
        """
        if not self.is_scaled:
            return self
        num_errors, total, weights = self.num_errors, self.squared_errors, self.rate_weights
        # What a row counts for hangs on the scale that the rows before it have left.
        for index in range(squares.shape[-1]):
            square, degrees = squares[..., index], _degrees(num_errors)
            scale = _scales(total, num_errors) if index else self._rate_scales
            if plausible is not None:
                usual = np.minimum(square, _MOST_OF_OUTLIER * scale)
                square = usual + plausible.by_expert[..., index] * (square - usual)
            ratio = square / scale
            log_density = -0.5 * (np.log(scale) + (degrees + 1.0) * np.log1p(ratio / degrees))
            posterior = weights * np.exp(log_density - np.maximum.reduce(log_density))
            share = (1.0 - _RATE_SWITCHING) / np.add.reduce(posterior)
            weights = share * posterior + _RATE_SWITCHING / len(posterior)
            num_errors = _KEPT * num_errors + 1.0
            total = _KEPT * total + square * ((degrees + 1.0) / (degrees + ratio))
        return Mixture(self.log_weights, self.lasting_log_weights, num_errors, total, weights, self.outliers)


def _degrees(num_errors: np.ndarray) -> float:
    return min(_FIRST_DEGREES + float(num_errors[0, 0, 0]), _MOST_DEGREES)


def _scales(squared_errors: np.ndarray, num_errors: np.ndarray) -> np.ndarray:
    """What variances are multiplied with, by rate.

    Before any row one is known as if from some rows, which fade out like all others: where noise was learned from
    rows that were wilder than those of late, the scale becomes small.
    """
    first = _FIRST_DEGREES * (1.0 - (1.0 - _KEPT) * num_errors)
    return np.maximum((first + squared_errors) / (first + num_errors), _LEAST_SCALE)
