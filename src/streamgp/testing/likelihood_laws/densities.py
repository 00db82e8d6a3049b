"""Laws of log densities, their derivatives and their expectations."""

import numpy as np
import pytest
import torch
from torch import Tensor

from streamgp.testing.likelihood_laws.problem import (
    TRUNCATION,
    AbstractLikelihoodProblem,
    assert_close,
    both_dtypes,
    dense,
)

__all__ = ["DensityLaws"]


class DensityLaws(AbstractLikelihoodProblem):
    """A density is that of its derivatives and expectations."""

    # Derivatives

    @both_dtypes
    def test_first_derivative_equals_autograd_of_the_log_density(
        self, rng: torch.Generator, dtype: torch.dtype
    ) -> None:
        f, _, y = self._problem(rng, dtype)
        f.requires_grad_()
        (expected,) = torch.autograd.grad(self.likelihood().log_density(f, y).sum(), f)
        assert_close(self.likelihood().derivatives(f, y)[0], expected, dtype)

    @both_dtypes
    def test_second_derivative_equals_autograd_of_the_first(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        f, _, y = self._problem(rng, dtype)
        f.requires_grad_()
        first, second = self.likelihood().derivatives(f, y)
        (expected,) = torch.autograd.grad(first.sum(), f)
        assert_close(second, expected, dtype)

    def test_second_derivative_is_never_positive_if_and_only_if_log_concave(self, rng: torch.Generator) -> None:
        f = torch.linspace(-8.0, 8.0, 161, dtype=torch.float64).unsqueeze(-1)
        _, second = self.likelihood().derivatives(f, self.targets(rng, 50, torch.float64))
        assert self.likelihood().is_log_concave == bool((second <= 0).all())

    # Expectations

    @both_dtypes
    def test_expectations_equal_a_dense_reference(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        mean, variance, y = self._problem(rng, dtype)
        likelihood = self.likelihood()
        m, v, t = mean.double(), variance.double(), y.double()
        expected = dense(lambda f: likelihood.log_density(f, t), m, v)
        assert_close(
            likelihood.expected_log_density(mean, variance, y), expected.to(dtype), dtype, truncation=TRUNCATION
        )
        for i, value in enumerate(likelihood.expected_derivatives(mean, variance, y)):
            expected = dense(lambda f, i=i: likelihood.derivatives(f, t)[i], m, v)  # type: ignore[misc]
            assert_close(value, expected.to(dtype), dtype, truncation=TRUNCATION)

    def test_expectations_of_one_are_those_of_tensors(self, rng: torch.Generator) -> None:
        likelihood, targets = self.likelihood(), self.targets(rng, 3, torch.float64)
        mean, variance = torch.tensor([[0.2, 0.5], [-3.0, 4.0], [1.5, 0.0]], dtype=torch.float64).T
        excess = []
        for y in targets:
            tensors = torch.stack(likelihood.expected_derivatives(mean, variance, y.expand(3)), -1)
            density = likelihood.expected_log_density(mean, variance, y.expand(3))
            for m, v, expected, log_density in zip(mean, variance, tensors, density, strict=True):
                point = float(m), float(v), float(y)
                numbers = likelihood.expected_derivatives_of_one(*point)
                assert all(isinstance(number, float) for number in numbers)
                assert_close(torch.tensor(numbers, dtype=torch.float64), expected, torch.float64)
                excess.append((likelihood.expected_log_density_of_one(*point), float(log_density)))
        # Up to a constant of the outcome.
        ours, theirs = torch.tensor(excess, dtype=torch.float64).view(3, 3, 2).unbind(-1)
        assert_close(ours - ours[:, :1], theirs - theirs[:, :1], torch.float64)

    @both_dtypes
    def test_expected_derivatives_are_gradients_of_the_expected_log_density(
        self, rng: torch.Generator, dtype: torch.dtype
    ) -> None:
        mean, variance, y = self._problem(rng, dtype)
        mean, variance = mean.requires_grad_(), variance.requires_grad_()
        value = self.likelihood().expected_log_density(mean, variance, y)
        in_mean, in_variance = torch.autograd.grad(value.sum(), (mean, variance))
        first, second = self.likelihood().expected_derivatives(mean, variance, y)
        assert_close(first, in_mean, dtype, truncation=TRUNCATION)
        assert_close(second, 2.0 * in_variance, dtype, truncation=TRUNCATION)

    def test_expectations_are_differentiable(self, rng: torch.Generator) -> None:
        mean, variance, y = self._problem(rng, torch.float64, n=3)
        arguments = (mean.requires_grad_(), variance.requires_grad_())
        likelihood = self.likelihood()
        assert torch.autograd.gradcheck(lambda m, v: likelihood.expected_derivatives(m, v, y), arguments)
        assert torch.autograd.gradcheck(lambda m, v: likelihood.log_predictive_density(m, v, y), arguments)
        assert torch.autograd.gradcheck(lambda m, v: likelihood.predictive_variance(m, v), arguments)

    # Predictive densities

    @both_dtypes
    def test_log_predictive_density_equals_a_dense_reference(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        mean, variance, y = self._problem(rng, dtype)
        m, v, t = mean.double(), variance.double(), y.double()
        expected = dense(lambda f: self.likelihood().log_density(f, t).exp(), m, v).log()
        value = self.likelihood().log_predictive_density(mean, variance, y)
        assert_close(value, expected.to(dtype), dtype, truncation=TRUNCATION)

    @both_dtypes
    def test_log_predictive_derivatives_in_closed_form_equal_autograd(
        self, rng: torch.Generator, dtype: torch.dtype
    ) -> None:
        mean, variance, y = self._problem(rng, dtype)
        mean.requires_grad_()
        derivatives = self.likelihood().log_predictive_derivatives(mean, variance, y)
        if derivatives is None:
            return
        density = self.likelihood().log_predictive_density(mean, variance, y)
        (expected,) = torch.autograd.grad(density.sum(), mean)
        assert_close(derivatives[0], expected, dtype)
        (expected,) = torch.autograd.grad(derivatives[0].sum(), mean)
        assert_close(derivatives[1], expected, dtype)

    @pytest.mark.parametrize("variance", [0.0, 0.5])
    def test_the_density_sums_to_one_and_has_the_predicted_moments(self, variance: float) -> None:
        likelihood, mean = self.likelihood(), torch.tensor([-1.5, 0.0, 1.2], dtype=torch.float64)
        v = torch.full_like(mean, variance)
        if self.is_discrete:
            y = torch.arange(self.support[0], self.support[1] + 1.0, dtype=torch.float64)
            weights = torch.ones_like(y)
        else:
            y, weights = _interval_nodes(*self.support)
        y = y.unsqueeze(-1)
        density = weights.unsqueeze(-1) * likelihood.log_predictive_density(mean, v, y).exp()
        assert bool(((density.sum(0) - 1.0).abs() < 10 * TRUNCATION).all()), density.sum(0)
        center = (y * density).sum(0)
        spread = ((y - center).square() * density).sum(0)
        curvature = -(density * likelihood.expected_derivatives(mean, v, y)[1]).sum(0)
        average = likelihood.expected_curvature(mean, v).expand_as(curvature)
        assert bool(torch.isfinite(average).all())
        if likelihood.is_log_concave:  # and so of a curvature that is linear in the outcome
            assert_close(average, curvature, torch.float64, truncation=self.moment_slack)
        found = {"predictive": (likelihood.predictive_mean(mean, v), likelihood.predictive_variance(mean, v))}
        if not variance:
            found["conditional"] = likelihood.conditional_mean(mean), likelihood.conditional_variance(mean)
        for name, moments in found.items():
            for moment, expected in zip(moments, (center, spread), strict=True):
                error = (moment - expected).abs() / (1.0 + expected)
                assert bool((error < self.moment_slack).all()), f"{name}: {moment}, not {expected}"

    @both_dtypes
    def test_zero_variance_gives_the_conditional(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        f, _, y = self._problem(rng, dtype)
        zero = torch.zeros_like(f)
        likelihood = self.likelihood()
        expected = likelihood.log_density(f, y)
        assert_close(likelihood.log_predictive_density(f, zero, y), expected, dtype)
        assert_close(likelihood.expected_log_density(f, zero, y), expected, dtype)
        pairs = zip(likelihood.expected_derivatives(f, zero, y), likelihood.derivatives(f, y), strict=True)
        for value, conditional in pairs:
            assert_close(value, conditional, dtype)


def _interval_nodes(lower: float, upper: float) -> tuple[Tensor, Tensor]:
    """Return Gauss–Legendre nodes and weights on an interval, on panels that are shorter near zero and the ends."""
    grid = torch.linspace(-1.0, 1.0, 81, dtype=torch.float64)
    near_zero = (grid * grid.abs() * max(-lower, upper)).clamp(lower, upper)
    near_ends = (upper - lower) * torch.exp2(-torch.arange(1, 30, dtype=torch.float64))
    edges = torch.cat([near_zero, lower + near_ends, upper - near_ends]).sort().values
    nodes, weights = (torch.as_tensor(part) for part in np.polynomial.legendre.leggauss(10))
    halves = 0.5 * edges.diff().unsqueeze(-1)
    points = edges[:-1].unsqueeze(-1) + halves * (1.0 + nodes)
    is_kept = halves.expand_as(points) > 0
    return points[is_kept], (halves * weights)[is_kept]
