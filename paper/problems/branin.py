"""The Branin function."""

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from paper.problems.base import AbstractProblem, Optimum, add_noise, check_noise_variance

__all__ = ["Branin"]


@final
@dataclass(frozen=True)
class Branin(AbstractProblem):
    r"""Maximize $f(x) = -v(x)^2 - 10 (1 - \frac{1}{8 \pi}) \cos x_1 - 10$, a function with three equal peaks.

    Here $v(x) = x_2 - \frac{5.1}{4 \pi^2} x_1^2 + \frac{5}{\pi} x_1 - 6$. Inputs lie in $[-5, 10] \times [0, 15]$. The
    maximum $-10 / (8 \pi) = -0.397887$ is reached at $(-\pi, 12.275)$, $(\pi, 2.275)$ and $(3 \pi, 2.475)$.
    Observations are exact by default.

    Attributes:
        noise_variance: Variance of Gaussian noise.
    """

    noise_variance: float = 0.0

    def __post_init__(self) -> None:
        """Check the noise."""
        check_noise_variance(self.noise_variance)

    @property
    def bounds(self) -> Tensor:
        return torch.tensor([[-5.0, 0.0], [10.0, 15.0]]).double()

    @property
    def optimum(self) -> Optimum:
        peaks = [[-math.pi, 12.275], [math.pi, 2.275], [3 * math.pi, 2.475]]
        return Optimum(-10 / (8 * math.pi), torch.tensor(peaks, dtype=torch.float64))

    def _evaluate(self, X: Tensor) -> Tensor:
        first, second = X.unbind(-1)
        valley = second - 5.1 / (4 * math.pi**2) * first.square() + 5 / math.pi * first - 6
        return -valley.square() - 10 * (1 - 1 / (8 * math.pi)) * first.cos() - 10

    def observe(self, X: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return add_noise(self.evaluate(X), self.noise_variance, generator)
