"""Weights of experts by how well they predicted, and the scale of their errors, both learned causally."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Mixture", "student_log_density"]

# The share of weight that is spread evenly over all experts with each row, as each may become the best one.
_SWITCHING_RATE = 0.005
# What one row counts for in the scale of errors, in the long run: the latest 33 rows or so, or the latest 200. A scale
# that moves is followed by the former; one that stays is better known by the latter. They are weighed like experts.
_SCALE_RATES = (0.03, 0.005)
_KEPT = 1.0 - torch.tensor(_SCALE_RATES, dtype=torch.float64)[:, None, None]
_RATE_SWITCHING = 0.003
# Degrees of freedom of the first prediction, and the most: the scale of errors is never known well.
_FIRST_DEGREES, _MOST_DEGREES = 3.0, 30.0


@final
@dataclass(frozen=True, eq=False)
class Mixture:
    r"""Which experts are to be believed, and how far; a frozen value.

    Weights are products of predictive densities, with a small rate of switching. Squared standardised errors of each
    expert, which fade out, tell the scale of its variances: predictions of real targets are Student-t with as many
    degrees of freedom as errors count, so wide at the start. They fade out at several rates, which are weighed by how
    well they predicted, too.

    Attributes:
        log_weights: Logarithms of the weights, which add up to one.
        num_errors: How many errors count, by rate.
        squared_errors: Their sum, outliers weighted down.
        rate_weights: Weights of the rates.
        is_scaled: Whether the scale of errors is learned; if not, predictions are Gaussian, as the beliefs say.
    """

    log_weights: Float[Tensor, " e"]
    num_errors: Float[Tensor, "r 1 1"]
    squared_errors: Float[Tensor, "r e c"]
    rate_weights: Float[Tensor, "r e c"]
    is_scaled: bool = True

    @classmethod
    def even(cls, num_experts: int, num_outputs: int, *, is_scaled: bool = True) -> "Mixture":
        """Before any row."""
        weights = torch.full((num_experts,), -math.log(num_experts), dtype=torch.float64)
        nothing = torch.zeros(len(_SCALE_RATES), num_experts, num_outputs, dtype=torch.float64)
        return cls(
            weights, nothing[:, :1, :1].clone(), nothing, torch.full_like(nothing, 1.0 / len(nothing)), is_scaled
        )

    @cached_property
    def weights(self) -> Float[Tensor, " e"]:
        """The weights."""
        return self.log_weights.exp()

    @property
    def degrees(self) -> float:
        """Degrees of freedom of predictions; infinite for Gaussian ones."""
        if not self.is_scaled:
            return math.inf
        return min(_FIRST_DEGREES + float(self.num_errors[0]), _MOST_DEGREES)

    @cached_property
    def scale(self) -> Float[Tensor, "e c"]:
        """What variances are multiplied with."""
        if not self.is_scaled:
            return torch.ones_like(self.squared_errors[0])
        return (self.rate_weights * _scales(self.squared_errors, self.num_errors)).sum(0)

    def judged(self, log_densities: Float[Tensor, "e n"]) -> "Mixture":
        """Weigh experts by how well they predicted some rows."""
        log_weights = self.log_weights
        e = len(log_weights)
        if e == 1:
            return self
        for row in log_densities.unbind(-1):
            posterior = torch.softmax(log_weights + row, -1)
            log_weights = ((1.0 - _SWITCHING_RATE) * posterior + _SWITCHING_RATE / e).log()
        return replace(self, log_weights=log_weights)

    def calibrated(self, squares: Float[Tensor, "e c n"]) -> "Mixture":
        """Learn the scale of errors from squared standardised ones."""
        if not self.is_scaled:
            return self
        num_errors, total, weights = self.num_errors, self.squared_errors, self.rate_weights
        kept = _KEPT
        for square in squares.unbind(-1):
            degrees = min(_FIRST_DEGREES + float(num_errors[0]), _MOST_DEGREES)
            scale = _scales(total, num_errors)
            ratio = square / scale
            log_density = -0.5 * (scale.log() + (degrees + 1.0) * torch.log1p(ratio / degrees))
            posterior = torch.softmax(weights.log() + log_density, 0)
            weights = (1.0 - _RATE_SWITCHING) * posterior + _RATE_SWITCHING / len(posterior)
            num_errors = kept * num_errors + 1.0
            total = kept * total + square * (degrees + 1.0) / (degrees + ratio)
        return replace(self, num_errors=num_errors, squared_errors=total, rate_weights=weights)


def _scales(squared_errors: Float[Tensor, "r e c"], num_errors: Float[Tensor, "r 1 1"]) -> Float[Tensor, "r e c"]:
    """What variances are multiplied with, by rate."""
    return (_FIRST_DEGREES + squared_errors) / (_FIRST_DEGREES + num_errors)


def student_log_density(
    error: Float[Tensor, "..."], variance: Float[Tensor, "..."], degrees: float
) -> Float[Tensor, "..."]:
    """Log density of Student's t at an error, with squared scale `variance`; Gaussian for infinite degrees."""
    if math.isinf(degrees):
        return -0.5 * (torch.log(2.0 * math.pi * variance) + error.square() / variance)
    constant = math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * degrees) - 0.5 * math.log(degrees * math.pi)
    return constant - 0.5 * variance.log() - 0.5 * (degrees + 1.0) * torch.log1p(error.square() / (degrees * variance))
