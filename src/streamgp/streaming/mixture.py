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
# What one row counts for in the scale of errors, in the long run: the latest 33 rows or so.
_SCALE_RATE = 0.03
# Degrees of freedom of the first prediction, and the most: the scale of errors is never known well.
_FIRST_DEGREES, _MOST_DEGREES = 3.0, 30.0


@final
@dataclass(frozen=True, eq=False)
class Mixture:
    r"""Which experts are to be believed, and how far; a frozen value.

    Weights are products of predictive densities, with a small rate of switching. Squared standardised errors of each
    expert, which fade out, tell the scale of its variances: predictions of real targets are Student-t with as many
    degrees of freedom as errors count, so wide at the start.

    Attributes:
        log_weights: Logarithms of the weights, which add up to one.
        num_errors: How many errors count.
        squared_errors: Their sum, outliers weighted down.
        is_scaled: Whether the scale of errors is learned; if not, predictions are Gaussian, as the beliefs say.
    """

    log_weights: Float[Tensor, " e"]
    num_errors: float
    squared_errors: Float[Tensor, "e c"]
    is_scaled: bool = True

    @classmethod
    def even(cls, num_experts: int, num_outputs: int, *, is_scaled: bool = True) -> "Mixture":
        """Before any row."""
        weights = torch.full((num_experts,), -math.log(num_experts), dtype=torch.float64)
        return cls(weights, 0.0, torch.zeros(num_experts, num_outputs, dtype=torch.float64), is_scaled)

    @cached_property
    def weights(self) -> Float[Tensor, " e"]:
        """The weights."""
        return self.log_weights.exp()

    @property
    def degrees(self) -> float:
        """Degrees of freedom of predictions; infinite for Gaussian ones."""
        if not self.is_scaled:
            return math.inf
        return min(_FIRST_DEGREES + self.num_errors, _MOST_DEGREES)

    @cached_property
    def scale(self) -> Float[Tensor, "e c"]:
        """What variances are multiplied with."""
        if not self.is_scaled:
            return torch.ones_like(self.squared_errors)
        return (_FIRST_DEGREES + self.squared_errors) / (_FIRST_DEGREES + self.num_errors)

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
        num_errors, total = self.num_errors, self.squared_errors
        if not self.is_scaled:
            return self
        for square in squares.unbind(-1):
            degrees = min(_FIRST_DEGREES + num_errors, _MOST_DEGREES)
            scale = (_FIRST_DEGREES + total) / (_FIRST_DEGREES + num_errors)
            counted = square * (degrees + 1.0) / (degrees + square / scale)
            num_errors = (1.0 - _SCALE_RATE) * num_errors + 1.0
            total = (1.0 - _SCALE_RATE) * total + counted
        return replace(self, num_errors=num_errors, squared_errors=total)


def student_log_density(
    error: Float[Tensor, "..."], variance: Float[Tensor, "..."], degrees: float
) -> Float[Tensor, "..."]:
    """Log density of Student's t at an error, with squared scale `variance`; Gaussian for infinite degrees."""
    if math.isinf(degrees):
        return -0.5 * (torch.log(2.0 * math.pi * variance) + error.square() / variance)
    constant = math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * degrees) - 0.5 * math.log(degrees * math.pi)
    return constant - 0.5 * variance.log() - 0.5 * (degrees + 1.0) * torch.log1p(error.square() / (degrees * variance))
