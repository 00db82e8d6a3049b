"""The laws of likelihoods of several latent functions, as a suite of tests to inherit."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from streamgp.errors import SupportError, UnsupportedError
from streamgp.likelihoods import AbstractMultiLatentLikelihood
from streamgp.testing.tolerances import approximation, rounding, tolerance

__all__ = ["MultiLatentLaws"]

# Nodes for each of two or three latent values.
_NUM_NODES = {2: 60, 3: 16}
both_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


class MultiLatentLaws(ABC):
    """Tests that hold for every likelihood of several latent functions.

    Attributes:
        covers: The public name of the likelihood in `streamgp.likelihoods`.
        refused: Targets outside the support, each with what the error must say.
        quadrature: Largest difference of expectations from those of a grid of nodes, for variances up to one.
    """

    covers: ClassVar[str]
    refused: ClassVar[tuple[tuple[float, str], ...]]
    quadrature: ClassVar[float]

    @abstractmethod
    def likelihood(self) -> AbstractMultiLatentLikelihood:
        """The likelihood under test, of two or three latent functions."""

    @abstractmethod
    def targets(self, rng: torch.Generator, n: int, dtype: torch.dtype) -> Tensor:
        """Draw targets."""

    def problem(self, rng: torch.Generator, dtype: torch.dtype, n: int = 5) -> tuple[Tensor, Tensor, Tensor]:
        """Means, variances and targets."""
        shape = (self.likelihood().num_latents, n)
        mean = torch.randn(shape, generator=rng, dtype=torch.float64)
        variance = torch.rand(shape, generator=rng, dtype=torch.float64)
        return mean.to(dtype), variance.to(dtype), self.targets(rng, n, dtype)

    def grid(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Latent values `(k, C, n)` and weights of a product of Gauss–Hermite rules."""
        num_latents = len(mean)
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NUM_NODES[num_latents])
        points = torch.cartesian_prod(*[torch.as_tensor(nodes)] * num_latents).unsqueeze(-1)
        products = torch.cartesian_prod(*[torch.as_tensor(weights)] * num_latents).prod(-1)
        return mean + variance.sqrt() * points, products / (2.0 * math.pi) ** (num_latents / 2)

    def log_density_reference(self, mean: Tensor, variance: Tensor, y: Tensor) -> Tensor:
        """Log density of targets; override it where densities are too narrow for a grid of nodes."""
        f, weights = self.grid(mean, variance)
        return torch.tensordot(weights, self.likelihood().log_density(f, y).exp(), dims=1).log()

    def test_derivatives_are_those_of_automatic_differentiation(self, rng: torch.Generator) -> None:
        mean, _, y = self.problem(rng, torch.float64)
        f = mean.clone().requires_grad_(True)
        total = self.likelihood().log_density(f, y).sum()
        (first,) = torch.autograd.grad(total, f, create_graph=True)
        second = torch.stack(
            [torch.autograd.grad(each.sum(), f, retain_graph=True)[0][c] for c, each in enumerate(first)]
        )
        found = self.likelihood().derivatives(mean, y)
        assert_close(found[0], first.detach(), **tolerance(torch.float64))
        assert_close(found[1], second, **tolerance(torch.float64))

    def test_expectations_are_those_of_a_grid(self, rng: torch.Generator) -> None:
        mean, variance, y = self.problem(rng, torch.float64)
        likelihood = self.likelihood()
        f, weights = self.grid(mean, variance)
        limits = approximation(self.quadrature, "quadrature")
        expected = torch.tensordot(weights, likelihood.log_density(f, y), dims=1)
        assert_close(likelihood.expected_log_density(mean, variance, y), expected, **limits)
        dense = [torch.tensordot(weights, each, dims=1) for each in likelihood.derivatives(f, y)]
        for found, each in zip(likelihood.expected_derivatives(mean, variance, y), dense, strict=True):
            assert_close(found, each, **limits)
        density = self.log_density_reference(mean, variance, y)
        assert_close(likelihood.log_predictive_density(mean, variance, y), density, **limits)

    def test_without_variance_expectations_are_values(self, rng: torch.Generator) -> None:
        mean, _, y = self.problem(rng, torch.float64)
        zero, likelihood = torch.zeros_like(mean), self.likelihood()
        limits = tolerance(torch.float64)
        assert_close(likelihood.expected_log_density(mean, zero, y), likelihood.log_density(mean, y), **limits)
        for found, each in zip(
            likelihood.expected_derivatives(mean, zero, y), likelihood.derivatives(mean, y), strict=True
        ):
            assert_close(found, each, **limits)

    @both_dtypes
    def test_a_batch_equals_a_loop_and_targets_may_be_repeated(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        problems = [self.problem(rng, dtype) for _ in range(3)]
        likelihood = self.likelihood()
        mean, variance, y = (torch.stack(each) for each in zip(*problems, strict=True))
        found = likelihood.expected_derivatives(mean, variance, y.unsqueeze(-2).expand_as(mean))
        for i, problem in enumerate(problems):
            for one, alone in zip(found, likelihood.expected_derivatives(*problem), strict=True):
                assert one.dtype == dtype
                assert_close(one[i], alone, **rounding(dtype, scale=10.0))

    def test_single_precision_agrees_with_double(self, rng: torch.Generator) -> None:
        mean, variance, y = self.problem(rng, torch.float64)
        likelihood = self.likelihood()
        single, double = (
            (*likelihood.expected_derivatives(*each), likelihood.expected_log_density(*each))
            for each in ((mean.float(), variance.float(), y.float()), (mean, variance, y))
        )
        for one, other in zip(single, double, strict=True):
            assert one.dtype == torch.float32
            assert_close(one.double(), other, **tolerance(torch.float32, scale=other.abs().max().item()))

    def test_samples_have_the_density(self, rng: torch.Generator) -> None:
        mean, _, _ = self.problem(rng, torch.float64, n=1)
        likelihood = self.likelihood()
        f = mean.expand(len(mean), 20_000)
        drawn = likelihood.sample(f.clone().requires_grad_(), generator=rng)
        assert not drawn.requires_grad
        assert drawn.shape == (20_000,)
        again = likelihood.sample(f, generator=torch.Generator().manual_seed(3))
        assert torch.equal(again, likelihood.sample(f, generator=torch.Generator().manual_seed(3)))
        self.check_samples(likelihood, mean, drawn)

    @abstractmethod
    def check_samples(self, likelihood: AbstractMultiLatentLikelihood, f: Tensor, drawn: Tensor) -> None:
        """Compare samples at latent values `(C, 1)` with their distribution."""

    def test_what_cannot_be_observed_is_refused(self) -> None:
        for target, sentence in (*self.refused, (math.nan, "targets must be")):
            with pytest.raises(SupportError, match=sentence):
                self.likelihood().check_targets(torch.tensor([target], dtype=torch.float64))

    def test_there_is_no_response_of_one_latent_value(self) -> None:
        with pytest.raises(UnsupportedError, match="latent functions, and has no response"):
            self.likelihood().response(torch.zeros(1, dtype=torch.float64))
