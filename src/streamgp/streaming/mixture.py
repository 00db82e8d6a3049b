"""Weights of experts by how well they predicted, and the scale of their errors, both learned causally."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

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

    log_weights: Float[Tensor, " e"]
    lasting_log_weights: Float[Tensor, " e"]
    num_errors: Float[Tensor, "r 1 1"]
    squared_errors: Float[Tensor, "r e c"]
    rate_weights: Float[Tensor, "r e c"]
    outliers: Outliers
    is_scaled: bool = True

    @classmethod
    def even(cls, num_experts: int, num_outputs: int, *, is_scaled: bool = True) -> "Mixture":
        """Before any row."""
        weights = torch.full((num_experts,), -math.log(num_experts), dtype=torch.float64)
        nothing = torch.zeros(len(_SCALE_RATES), num_experts, num_outputs, dtype=torch.float64)
        return cls(
            weights,
            weights,
            nothing[:, :1, :1].clone(),
            nothing,
            torch.full_like(nothing, 1.0 / len(nothing)),
            Outliers.none(num_experts, num_outputs),
            is_scaled,
        )

    @cached_property
    def weights(self) -> Float[Tensor, " e"]:
        """The weights."""
        return self.log_weights.exp()

    @cached_property
    def degrees(self) -> float:
        """Degrees of freedom of predictions; infinite for Gaussian ones."""
        if not self.is_scaled:
            return math.inf
        return _degrees(self.num_errors.numpy())

    @cached_property
    def scale(self) -> Float[Tensor, "e c"]:
        """What variances are multiplied with."""
        if not self.is_scaled:
            return torch.ones_like(self.squared_errors[0])
        return torch.from_numpy((self.rate_weights.numpy() * self._rate_scales).sum(0))

    @cached_property
    def _rate_scales(self) -> np.ndarray:
        """The same by each rate `(r, e, c)`."""
        return _scales(self.squared_errors.numpy(), self.num_errors.numpy())

    def expecting(self, outliers: Outliers) -> "Mixture":
        """The same with other outliers."""
        return self if outliers is self.outliers else replace(self, outliers=outliers)

    def judged(self, log_densities: Float[Tensor, "e n"], plausible: Plausibility | None = None) -> "Mixture":
        """Weigh experts by how well they predicted some rows; by outliers nobody is judged.

        Args:
            log_densities: Of the rows, by each expert.
            plausible: How far they tell of the function; None for altogether.
        """
        e = len(self.log_weights)
        if e == 1:
            return self
        # These are so few numbers that NumPy takes a third of the time of torch.
        log_weights, lasting = self.log_weights.numpy(), self.lasting_log_weights.numpy()
        densities = log_densities.numpy() if plausible is None else plausible.overall * log_densities.numpy()
        for row in densities.T:
            lasting = (1.0 - _LASTING_RATE) * lasting + (row - row.max())
            posterior = log_weights + row
            posterior = np.exp(posterior - posterior.max())
            log_weights = np.log((1.0 - _SWITCHING_RATE) / posterior.sum() * posterior + _SWITCHING_RATE / e)
        scales = self.num_errors, self.squared_errors, self.rate_weights, self.outliers
        other = Mixture(torch.from_numpy(log_weights), torch.from_numpy(lasting), *scales, self.is_scaled)
        if "_rate_scales" in self.__dict__:
            other.__dict__["_rate_scales"] = self._rate_scales
        return other

    def calibrated(self, squares: Float[Tensor, "e c n"], plausible: Plausibility | None = None) -> "Mixture":
        """Learn the scale of errors from squared standardized ones; those of outliers say little.

        Args:
            squares: The squares.
            plausible: How far they tell of the function; None for altogether.
        """
        if not self.is_scaled:
            return self
        num_errors, total, weights = (
            each.numpy() for each in (self.num_errors, self.squared_errors, self.rate_weights)
        )
        # What a row counts for hangs on the scale that the rows before it have left.
        for index, square in enumerate(np.moveaxis(squares.numpy(), -1, 0)):
            degrees = _degrees(num_errors)
            scale = _scales(total, num_errors) if index else self._rate_scales
            if plausible is not None:
                usual = np.minimum(square, _MOST_OF_OUTLIER * scale)
                square = usual + plausible.by_expert[..., index] * (square - usual)
            ratio = square / scale
            log_density = -0.5 * (np.log(scale) + (degrees + 1.0) * np.log1p(ratio / degrees))
            posterior = weights * np.exp(log_density - log_density.max(0))
            weights = (1.0 - _RATE_SWITCHING) / posterior.sum(0) * posterior + _RATE_SWITCHING / len(posterior)
            num_errors = _KEPT * num_errors + 1.0
            total = _KEPT * total + square * ((degrees + 1.0) / (degrees + ratio))
        from_numpy = torch.from_numpy
        scales = from_numpy(num_errors), from_numpy(total), from_numpy(weights), self.outliers
        return Mixture(self.log_weights, self.lasting_log_weights, *scales, is_scaled=True)


def _degrees(num_errors: np.ndarray) -> float:
    return min(_FIRST_DEGREES + float(num_errors[0, 0, 0]), _MOST_DEGREES)


def _scales(squared_errors: np.ndarray, num_errors: np.ndarray) -> np.ndarray:
    """What variances are multiplied with, by rate.

    Before any row one is known as if from some rows, which fade out like all others: where noise was learned from
    rows that were wilder than those of late, the scale becomes small.
    """
    first = _FIRST_DEGREES * (1.0 - (1.0 - _KEPT) * num_errors)
    return np.maximum((first + squared_errors) / (first + num_errors), _LEAST_SCALE)
