"""Latent values and targets with which a likelihood is tested, and comparisons of its numbers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.testing.tolerances import rounding

__all__ = ["TRUNCATION", "AbstractLikelihoodProblem", "assert_close", "both_dtypes", "dense", "methods"]

both_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])

# Logarithms of densities add and subtract numbers about ten times as large as their values, and cancel once more in
# second derivatives.
_CONDITION = 32.0
# What the library's quadratures leave out, relative to the values, for variances up to one.
TRUNCATION = 1e-8


class AbstractLikelihoodProblem(ABC):
    """A likelihood, and targets that are plausible for it.

    Attributes:
        covers: The public name of the likelihood in `streamgp.likelihoods`.
        is_discrete: True if the targets are whole numbers.
        support: An interval that holds all but a negligible part of the probability for latent values
            between -2 and 2.
        refused: Targets outside the support, each with what the error must say.
        moment_slack: Largest difference of mean and variance from those of the density within `support`.
        quantile_slack: Largest error of the probability of a quantile, beyond sampling error.
    """

    covers: ClassVar[str]
    is_discrete: ClassVar[bool]
    support: ClassVar[tuple[float, float]]
    refused: ClassVar[tuple[tuple[float, str], ...]]
    moment_slack: ClassVar[float] = 1e-6
    quantile_slack: ClassVar[float] = 0.0

    @abstractmethod
    def likelihood(self) -> AbstractLikelihood:
        """Return the likelihood under test, with scalar constants and smooth enough for quadrature at variance 1."""

    @abstractmethod
    def targets(self, rng: torch.Generator, n: int, dtype: torch.dtype) -> Tensor:
        """Return `n` plausible targets."""

    @pytest.fixture
    def rng(self) -> torch.Generator:
        """Return a generator with a fixed seed."""
        return torch.Generator().manual_seed(2021)

    def _problem(self, rng: torch.Generator, dtype: torch.dtype, n: int = 20) -> tuple[Tensor, Tensor, Tensor]:
        """Return means in [-2, 2], variances in [0.1, 1] and targets."""
        mean = 4.0 * torch.rand(n, generator=rng, dtype=torch.float64) - 2.0
        variance = 0.1 + 0.9 * torch.rand(n, generator=rng, dtype=torch.float64)
        return mean.to(dtype), variance.to(dtype), self.targets(rng, n, dtype)


def methods(likelihood: AbstractLikelihood) -> dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]:
    """Return every method that maps to numbers, called as (mean, variance, y)."""
    return {
        "log_density": lambda m, v, y: likelihood.log_density(m, y),
        "first derivative": lambda m, v, y: likelihood.derivatives(m, y)[0],
        "second derivative": lambda m, v, y: likelihood.derivatives(m, y)[1],
        "expected_log_density": likelihood.expected_log_density,
        "expected first derivative": lambda m, v, y: likelihood.expected_derivatives(m, v, y)[0],
        "expected second derivative": lambda m, v, y: likelihood.expected_derivatives(m, v, y)[1],
        "log_predictive_density": likelihood.log_predictive_density,
        "predictive_mean": lambda m, v, y: likelihood.predictive_mean(m, v),
        "predictive_variance": lambda m, v, y: likelihood.predictive_variance(m, v),
    }


def assert_close(
    actual: Tensor, expected: Tensor, dtype: torch.dtype, name: str = "value", *, truncation: float = 0.0
) -> None:
    """Compare within rounding, magnified as densities and their derivatives do, and what a quadrature leaves out."""
    scale = 1.0 + float(expected.detach().abs().max()) if expected.numel() else 1.0
    limits = rounding(dtype, condition=_CONDITION, scale=scale)
    torch.testing.assert_close(
        actual,
        expected,
        rtol=limits["rtol"] + truncation,
        atol=limits["atol"] + truncation * scale,
        msg=lambda text: f"{name}: {text}",
    )


def dense(function: Callable[[Tensor], Tensor], mean: Tensor, variance: Tensor) -> Tensor:
    """Integrate against a Gaussian by the trapezoidal rule on 8001 nodes over 12 standard deviations."""
    t = torch.linspace(-12.0, 12.0, 8001, dtype=torch.float64).unsqueeze(-1)
    weights = torch.exp(-0.5 * t.square()) * 0.003 / math.sqrt(2.0 * math.pi)
    return (weights * function(mean + variance.sqrt() * t)).sum(0)
