"""The six-dimensional Hartmann function, observed with Gaussian noise or through counts."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from paper.problems.base import AbstractProblem, Optimum, add_noise, check_noise_variance, unit_cube

__all__ = ["Hartmann6", "PoissonHartmann6"]

_HEIGHTS = (1.0, 1.2, 3.0, 3.2)
_RATES = (
    (10.0, 3.0, 17.0, 3.5, 1.7, 8.0),
    (0.05, 10.0, 17.0, 0.1, 8.0, 14.0),
    (3.0, 3.5, 1.7, 10.0, 17.0, 8.0),
    (17.0, 8.0, 0.05, 10.0, 0.1, 14.0),
)
_CENTERS = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)
_PEAK = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
_OPTIMUM = 3.32237
# The constraint: the sum of the inputs.
_MOST_SUM = 3.0


@dataclass(frozen=True)
class _AbstractHartmann(AbstractProblem):
    """What both problems share; their fields are described there."""

    noise_variance: float = 0.25
    is_constrained: bool = True

    def __post_init__(self) -> None:
        """Check the noise."""
        check_noise_variance(self.noise_variance)

    @property
    def bounds(self) -> Tensor:
        return unit_cube(6)

    @property
    def optimum(self) -> Optimum:
        return Optimum(_OPTIMUM, torch.tensor([_PEAK], dtype=torch.float64))

    @property
    def num_constraints(self) -> int:
        """One, or none."""
        return int(self.is_constrained)

    @abstractmethod
    def _outcomes(self, values: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draw the observed objective, given the function's values."""

    def _evaluate(self, X: Tensor) -> Tensor:
        heights, rates, centers = (
            torch.tensor(one, dtype=X.dtype, device=X.device) for one in (_HEIGHTS, _RATES, _CENTERS)
        )
        exponent = (rates * (X.unsqueeze(-2) - centers).square()).sum(-1)
        return (heights * (-exponent).exp()).sum(-1)

    def _evaluate_constraints(self, X: Tensor) -> Tensor:
        return (X.sum(-1, keepdim=True) - _MOST_SUM)[..., : self.num_constraints]

    def observe(self, X: Tensor, generator: torch.Generator | None = None) -> Tensor:
        X = self._checked(X)
        objective = self._outcomes(self._evaluate(X), generator)
        constraints = add_noise(self._evaluate_constraints(X), self.noise_variance, generator)
        return torch.cat([objective.unsqueeze(-1), constraints], dim=-1) if self.is_constrained else objective


@final
@dataclass(frozen=True)
class Hartmann6(_AbstractHartmann):
    r"""Maximize $f(x) = \sum_i \alpha_i \exp(-\sum_j A_{ij} (x_j - P_{ij})^2)$ where $\sum_j x_j \le 3$.

    Inputs lie in the unit cube. The maximum 3.32237 is at (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573);
    the constraint is not active there, as the inputs sum to 2.07. Objective and constraint $\sum_j x_j - 3$ have
    Gaussian noise, of standard deviation 0.5 by default.

    Attributes:
        noise_variance: Variance of the noise, of objective and constraint.
        is_constrained: Whether there is the constraint.
    """

    def _outcomes(self, values: Tensor, generator: torch.Generator | None) -> Tensor:
        return add_noise(values, self.noise_variance, generator)


@final
@dataclass(frozen=True)
class PoissonHartmann6(_AbstractHartmann):
    r"""Maximize the logarithm $f$ of the rate of counts $y \sim \operatorname{Poisson}(\exp f(x))$; $f$ as `Hartmann6`.

    `evaluate` gives $f$, with its maximum of 3.32237, where the mean count is 27.7; most of the cube has a mean count
    near 1. The noise is that of the counts. The constraint is as in `Hartmann6`, with Gaussian noise of standard
    deviation 0.5 by default.

    Attributes:
        noise_variance: Variance of the noise of the constraint.
        is_constrained: Whether there is the constraint.
    """

    def _outcomes(self, values: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.poisson(values.exp(), generator=generator)
