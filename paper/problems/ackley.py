"""The Ackley function."""

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from paper.problems.base import AbstractProblem, Optimum, add_noise, check_noise_variance
from streamgp.checks import keep_count

__all__ = ["Ackley"]


@final
@dataclass(frozen=True)
class Ackley(AbstractProblem):
    r"""Maximize $20 \exp(-0.2 \sqrt{\frac1d \sum_j x_j^2}) + \exp(\frac1d \sum_j \cos 2 \pi x_j) - 20 - e$.

    Inputs lie in $[-32.768, 32.768]^d$. The maximum 0 is at the origin, in a field of local maxima, one near each
    point with whole coordinates. Observations are exact by default.

    Attributes:
        num_dims: Number of inputs $d$.
        noise_variance: Variance of Gaussian noise.
    """

    num_dims: int = 2
    noise_variance: float = 0.0

    def __post_init__(self) -> None:
        """Check the number of inputs and the noise."""
        keep_count(self, "num_dims")
        check_noise_variance(self.noise_variance)

    @property
    def bounds(self) -> Tensor:
        side = torch.full((self.num_dims,), 32.768, dtype=torch.float64)
        return torch.stack([-side, side])

    @property
    def optimum(self) -> Optimum:
        return Optimum(0.0, torch.zeros(1, self.num_dims, dtype=torch.float64))

    def _evaluate(self, X: Tensor) -> Tensor:
        bowl = 20 * torch.expm1(-0.2 * X.square().mean(-1).sqrt())
        return bowl + (2 * math.pi * X).cos().mean(-1).exp() - math.e

    def observe(self, X: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return add_noise(self.evaluate(X), self.noise_variance, generator)
