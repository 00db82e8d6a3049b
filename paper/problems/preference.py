"""A utility that is only seen through comparisons."""

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from paper.problems.base import AbstractProblem, Optimum, add_noise, check_noise_variance, unit_cube

__all__ = ["PreferenceCosine"]

_NUM_DIMS = 10


@final
@dataclass(frozen=True)
class PreferenceCosine(AbstractProblem):
    r"""Maximize $f(x) = -10^{-1/2} \sum_{i=1}^{10} \sqrt{i} \, \cos(2 \pi x_i)$ by comparing pairs of inputs.

    Inputs lie in the unit cube. The maximum 7.105 is at $x_i = \frac12$. In a comparison, both values have Gaussian
    noise, of standard deviation 0.1 by default, and the larger wins.

    Attributes:
        noise_variance: Variance of the noise of each value.
    """

    noise_variance: float = 0.01

    def __post_init__(self) -> None:
        """Check the noise."""
        check_noise_variance(self.noise_variance)

    @property
    def bounds(self) -> Tensor:
        return unit_cube(_NUM_DIMS)

    @property
    def optimum(self) -> Optimum:
        value = sum(math.sqrt(i) for i in range(1, _NUM_DIMS + 1)) / math.sqrt(10)
        return Optimum(value, torch.full((1, _NUM_DIMS), 0.5, dtype=torch.float64))

    def _evaluate(self, X: Tensor) -> Tensor:
        weights = torch.arange(1, _NUM_DIMS + 1).to(X).sqrt()
        return -((2 * math.pi * X).cos() * weights).sum(-1) / math.sqrt(10)

    def observe(self, X: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return add_noise(self.evaluate(X), self.noise_variance, generator)

    def compare(self, first: Tensor, second: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Compare inputs.

        Args:
            first: Inputs `(*b, n, d)`.
            second: What they are compared with, likewise.
            generator: Source of the noise.

        Returns:
            Whether the first wins, `(*b, n)`.
        """
        return self.observe(first, generator) > self.observe(second, generator)
