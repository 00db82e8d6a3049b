"""The laws of every likelihood, as a suite of tests to inherit.

class TestPoisson(LikelihoodLaws):
    covers = "Poisson"
    is_discrete = True
    support = (0.0, 200.0)
    refused = ((-1.0, "whole numbers"),)

    def likelihood(self):
        return Poisson(exposure=2.0)

    def targets(self, rng, n, dtype):
        return torch.randint(0, 9, (n,), generator=rng).to(dtype)
"""

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import FrozenInstanceError
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from streamgp.errors import DTypeError, OptionError, SupportError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.testing.tolerances import rounding

__all__ = ["LikelihoodLaws"]

both_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])

# Samples may be this many standard errors away from what they estimate: one in 1.7 million is.
_NUM_ERRORS = 5.0
_NUM_SAMPLES = 20_000

# Logarithms of densities add and subtract numbers about ten times as large as their values, and cancel once more in
# second derivatives.
_CONDITION = 32.0
# What the library's quadratures leave out, relative to the values, for variances up to one.
_TRUNCATION = 1e-8


class LikelihoodLaws(ABC):
    """Tests that hold for every likelihood.

    Attributes:
        covers: The public name of the likelihood in `streamgp.likelihoods`.
        is_discrete: Whether the targets are whole numbers.
        support: An interval that holds all but a negligible part of the probability for latent values
            between -2 and 2.
        refused: Targets outside the support, each with what the error must say.
        quantile_slack: How far the probability of a quantile may be off, beyond sampling error.
    """

    covers: ClassVar[str]
    is_discrete: ClassVar[bool]
    support: ClassVar[tuple[float, float]]
    refused: ClassVar[tuple[tuple[float, str], ...]]
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

    # Derivatives

    @both_dtypes
    def test_first_derivative_equals_autograd_of_the_log_density(
        self, rng: torch.Generator, dtype: torch.dtype
    ) -> None:
        f, _, y = self._problem(rng, dtype)
        f.requires_grad_()
        (expected,) = torch.autograd.grad(self.likelihood().log_density(f, y).sum(), f)
        _assert_close(self.likelihood().derivatives(f, y)[0], expected, dtype)

    @both_dtypes
    def test_second_derivative_equals_autograd_of_the_first(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        f, _, y = self._problem(rng, dtype)
        f.requires_grad_()
        first, second = self.likelihood().derivatives(f, y)
        (expected,) = torch.autograd.grad(first.sum(), f)
        _assert_close(second, expected, dtype)

    def test_second_derivative_is_never_positive_if_log_concave(self, rng: torch.Generator) -> None:
        f = torch.linspace(-8.0, 8.0, 161, dtype=torch.float64).unsqueeze(-1)
        _, second = self.likelihood().derivatives(f, self.targets(rng, 50, torch.float64))
        assert not self.likelihood().is_log_concave or bool((second <= 0).all())

    # Expectations

    @both_dtypes
    def test_expectations_equal_a_dense_reference(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        mean, variance, y = self._problem(rng, dtype)
        likelihood = self.likelihood()
        m, v, t = mean.double(), variance.double(), y.double()
        expected = _dense(lambda f: likelihood.log_density(f, t), m, v)
        _assert_close(
            likelihood.expected_log_density(mean, variance, y), expected.to(dtype), dtype, truncation=_TRUNCATION
        )
        for i, value in enumerate(likelihood.expected_derivatives(mean, variance, y)):
            expected = _dense(lambda f, i=i: likelihood.derivatives(f, t)[i], m, v)  # type: ignore[misc]
            _assert_close(value, expected.to(dtype), dtype, truncation=_TRUNCATION)

    @both_dtypes
    def test_expected_derivatives_are_gradients_of_the_expected_log_density(
        self, rng: torch.Generator, dtype: torch.dtype
    ) -> None:
        mean, variance, y = self._problem(rng, dtype)
        mean, variance = mean.requires_grad_(), variance.requires_grad_()
        value = self.likelihood().expected_log_density(mean, variance, y)
        in_mean, in_variance = torch.autograd.grad(value.sum(), (mean, variance))
        first, second = self.likelihood().expected_derivatives(mean, variance, y)
        _assert_close(first, in_mean, dtype, truncation=_TRUNCATION)
        _assert_close(second, 2.0 * in_variance, dtype, truncation=_TRUNCATION)

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
        expected = _dense(lambda f: self.likelihood().log_density(f, t).exp(), m, v).log()
        value = self.likelihood().log_predictive_density(mean, variance, y)
        _assert_close(value, expected.to(dtype), dtype, truncation=_TRUNCATION)

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
        _assert_close(derivatives[0], expected, dtype)
        (expected,) = torch.autograd.grad(derivatives[0].sum(), mean)
        _assert_close(derivatives[1], expected, dtype)

    @pytest.mark.parametrize("variance", [0.0, 0.5])
    def test_densities_sum_to_one(self, variance: float) -> None:
        mean = torch.tensor([-1.5, 0.0, 1.2], dtype=torch.float64)
        v = torch.full_like(mean, variance)

        if self.is_discrete:
            y = torch.arange(self.support[0], self.support[1] + 1.0, dtype=torch.float64)
            weights = torch.ones_like(y)
        else:
            y, weights = _panels(*self.support)
        density = self.likelihood().log_predictive_density(mean, v, y.unsqueeze(-1)).exp()
        total = (weights.unsqueeze(-1) * density).sum(0)
        assert bool(((total - 1.0).abs() < 10 * _TRUNCATION).all()), total

    @both_dtypes
    def test_zero_variance_gives_the_conditional(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        f, _, y = self._problem(rng, dtype)
        zero = torch.zeros_like(f)
        likelihood = self.likelihood()
        expected = likelihood.log_density(f, y)
        _assert_close(likelihood.log_predictive_density(f, zero, y), expected, dtype)
        _assert_close(likelihood.expected_log_density(f, zero, y), expected, dtype)
        pairs = zip(likelihood.expected_derivatives(f, zero, y), likelihood.derivatives(f, y), strict=True)
        for value, conditional in pairs:
            _assert_close(value, conditional, dtype)

    # Predictions and samples

    @pytest.mark.parametrize("variance", [0.0, 0.7])
    def test_samples_match_the_predictive_moments(self, rng: torch.Generator, variance: float) -> None:
        mean, v, y = self._samples(rng, variance)
        likelihood = self.likelihood()
        center, spread = likelihood.predictive_mean(mean, v), likelihood.predictive_variance(mean, v)
        assert bool(((y.mean(0) - center).abs() <= _NUM_ERRORS * y.std(0) / math.sqrt(len(y)) + 1e-12).all())
        square = (y - center).square()
        assert bool(((square.mean(0) - spread).abs() <= _NUM_ERRORS * square.std(0) / math.sqrt(len(y)) + 1e-12).all())

    @pytest.mark.parametrize("variance", [0.0, 0.7])
    def test_samples_match_the_predictive_quantiles(self, rng: torch.Generator, variance: float) -> None:
        mean, v, y = self._samples(rng, variance)
        probabilities = torch.tensor([0.05, 0.37, 0.5, 0.9, 0.99], dtype=torch.float64)
        quantiles = self.likelihood().predictive_quantiles(mean, v, probabilities)
        assert quantiles.shape == (*mean.shape, len(probabilities))
        error = self.quantile_slack + _NUM_ERRORS * (probabilities * (1.0 - probabilities) / len(y)).sqrt()
        assert bool(((y.unsqueeze(-1) <= quantiles).double().mean(0) >= probabilities - error).all())
        assert bool(((y.unsqueeze(-1) < quantiles).double().mean(0) <= probabilities + error).all())

    @pytest.mark.parametrize("variance", [0.0, 0.7])
    def test_quantiles_are_where_the_cumulative_probability_reaches_them(self, variance: float) -> None:
        likelihood = self.likelihood()
        mean = torch.tensor([-0.4, 0.3, 1.1], dtype=torch.float64)
        v = torch.full_like(mean, variance)
        probabilities = torch.tensor([0.05, 0.37, 0.9], dtype=torch.float64)
        quantiles = likelihood.predictive_quantiles(mean, v, probabilities).movedim(-1, 0)
        reached = likelihood.predictive_cumulative(mean, v, quantiles)
        if reached is None:
            pytest.skip("the likelihood does not know its cumulative probabilities")
        step = 1e-3 if likelihood.outcome_kind == "real" else 1.0
        before = likelihood.predictive_cumulative(mean, v, quantiles - step)
        assert before is not None
        assert bool((reached >= probabilities.unsqueeze(-1) - 1e-6).all())
        assert bool((before < probabilities.unsqueeze(-1) + 1e-6).all())
        if likelihood.outcome_kind == "count":
            counts = range(int(quantiles.max()) + 1)
            each = torch.stack(
                [likelihood.log_predictive_density(mean, v, torch.full_like(mean, k)).exp() for k in counts]
            )
            total = each.cumsum(0).gather(0, quantiles.long())
            torch.testing.assert_close(reached, total, rtol=1e-6, atol=1e-7)

    def test_probabilities_of_quantiles_are_checked(self) -> None:
        zero = torch.zeros(2, dtype=torch.float64)
        with pytest.raises(ValueRangeError, match="probabilities must be between 0 and 1, but is 1"):
            self.likelihood().predictive_quantiles(zero, zero + 1.0, [0.5, 1.0])

    @both_dtypes
    def test_the_same_generator_state_gives_the_same_samples(self, dtype: torch.dtype) -> None:
        f = torch.linspace(-1.0, 1.0, 20, dtype=dtype)
        first, again, other = (
            self.likelihood().sample(f, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
        )
        assert first.dtype == dtype
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
        self.likelihood().check_targets(first)

    # Types, shapes and extremes

    def test_single_precision_agrees_with_double(self, rng: torch.Generator) -> None:
        problem = self._problem(rng, torch.float32)
        for name, method in _methods(self.likelihood()).items():
            single, double = method(*problem), method(*(part.double() for part in problem))
            assert single.dtype == torch.float32, name
            _assert_close(single, double.float(), torch.float32, name)

    def test_a_batched_call_equals_a_loop(self, rng: torch.Generator) -> None:
        mean, variance, _ = self._problem(rng, torch.float64, n=6)
        mean, variance = mean.reshape(2, 1, 3), variance[:3]
        y = self.targets(rng, 12, torch.float64).reshape(4, 3)
        for name, method in _methods(self.likelihood()).items():
            batched = method(mean, variance, y)
            for i in range(2):
                for j in range(4):
                    part = batched[i, j] if batched.shape[:2] == (2, 4) else batched[i, 0]
                    _assert_close(part, method(mean[i, 0], variance, y[j]), torch.float64, name)

    def test_batched_quantiles_equal_a_loop(self) -> None:
        mean = torch.tensor([[-1.0, 0.3, 1.0], [0.5, 0.0, -0.5]], dtype=torch.float64)
        variance = torch.tensor([0.2, 0.0, 0.6], dtype=torch.float64)
        quantiles = self.likelihood().predictive_quantiles(mean, variance, [0.2, 0.7])
        loop = [
            self.likelihood().predictive_quantiles(row, variance, torch.tensor([0.2, 0.7], dtype=torch.float64))
            for row in mean
        ]
        if self.quantile_slack == 0.0:
            _assert_close(quantiles, torch.stack(loop), torch.float64, truncation=_TRUNCATION)
        assert quantiles.shape == (2, 3, 2)

    def test_no_observations_give_empty_results(self) -> None:
        empty = torch.zeros(2, 0, dtype=torch.float64)
        for name, method in _methods(self.likelihood()).items():
            assert method(empty, empty, empty).shape == (2, 0), name
        assert self.likelihood().predictive_quantiles(empty, empty, [0.1, 0.5, 0.9]).shape == (2, 0, 3)
        assert self.likelihood().sample(empty).shape == (2, 0)
        assert self.likelihood().check_targets(empty).shape == (2, 0)

    def test_results_in_inference_mode_leave_training_possible(self, rng: torch.Generator) -> None:
        mean, variance, y = self._problem(rng, torch.float64)
        with torch.inference_mode():
            expected = self.likelihood().expected_log_density(mean, variance, y)
        mean.requires_grad_()
        value = self.likelihood().expected_log_density(mean, variance, y)
        value.sum().backward()
        _assert_close(value.detach(), expected, torch.float64)

    @both_dtypes
    def test_extreme_latent_values_stay_finite(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        mean = torch.tensor([-100.0, -30.0, 0.0, 30.0, 100.0], dtype=dtype).unsqueeze(-1)
        y = self.targets(rng, 10, dtype)
        for variance in (0.0, 1e-12, 1.0, 100.0):
            v = torch.full_like(mean, variance)
            for name, method in _methods(self.likelihood()).items():
                assert bool(torch.isfinite(method(mean, v, y)).all()), f"{name} at variance {variance}"

    @both_dtypes
    def test_gradients_at_zero_variance_are_finite(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        mean, _, y = self._problem(rng, dtype)
        variance = torch.zeros_like(mean).requires_grad_()
        mean.requires_grad_()
        likelihood = self.likelihood()
        value = likelihood.expected_log_density(mean, variance, y) + likelihood.log_predictive_density(
            mean, variance, y
        )
        for gradient in torch.autograd.grad(value.sum(), (mean, variance)):
            assert bool(torch.isfinite(gradient).all())

    # Responses and rows

    @both_dtypes
    def test_the_response_is_the_mean_without_variance(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        mean, _, _ = self._problem(rng, dtype)
        unit = self.likelihood().per_unit()
        _assert_close(unit.response(mean), unit.predictive_mean(mean, torch.zeros_like(mean)), dtype)

    def test_the_inverse_response_takes_back_the_response(self, rng: torch.Generator) -> None:
        likelihood = self.likelihood()
        if not likelihood.has_response:
            with pytest.raises(UnsupportedError, match="has no response"):
                likelihood.inverse_response(torch.zeros(2))
            return
        mean, _, _ = self._problem(rng, torch.float64)
        _assert_close(likelihood.inverse_response(likelihood.response(mean)), mean, torch.float64)

    def test_the_variance_of_the_response_equals_a_dense_reference(self, rng: torch.Generator) -> None:
        mean, variance, _ = self._problem(rng, torch.float64)
        likelihood = self.likelihood()
        center = _dense(likelihood.response, mean, variance)
        expected = _dense(lambda f: (likelihood.response(f) - center).square(), mean, variance)
        _assert_close(likelihood.response_variance(mean, variance), expected, torch.float64)

    def test_responses_out_of_range_raise_a_sentence(self) -> None:
        likelihood = self.likelihood()
        for end in likelihood.response_range if likelihood.has_response else ():
            with pytest.raises(ValueRangeError, match=r"response of a .* must be .* but is"):
                likelihood.inverse_response(torch.tensor([end]))

    def test_the_likelihood_of_some_rows_has_their_constants(self, rng: torch.Generator) -> None:
        mean, _, y = self._problem(rng, torch.float64, n=4)
        index = torch.tensor([2, 0])
        likelihood = self.likelihood()
        _assert_close(
            likelihood.at_rows(index).log_density(mean[index], y[index]),
            likelihood.log_density(mean, y)[index],
            y.dtype,
        )

    def test_data_of_rows_is_kept_or_refused(self, rng: torch.Generator) -> None:
        likelihood, data = self.likelihood(), torch.tensor([3.0, 5.0], dtype=torch.float64)
        assert likelihood.with_row_data(None) is likelihood
        if likelihood.row_data is None:
            with pytest.raises(OptionError, match="has no number of trials, exposure or known noise"):
                likelihood.with_row_data(data)
        else:
            assert torch.equal(getattr(likelihood.with_row_data(data), likelihood.row_data), data)

    def test_scaled_targets_have_the_density_of_a_change_of_units(self, rng: torch.Generator) -> None:
        likelihood = self.likelihood()
        if not likelihood.is_location_scale:
            with pytest.raises(UnsupportedError, match="cannot be scaled"):
                likelihood.rescaled(2.0)
            return
        mean, _, y = self._problem(rng, torch.float64)
        scaled = likelihood.rescaled(2.0).log_density(mean / 2.0, y / 2.0)
        _assert_close(scaled - math.log(2.0), likelihood.log_density(mean, y), torch.float64)

    def test_the_kind_of_outcomes_is_that_of_samples(self, rng: torch.Generator) -> None:
        likelihood = self.likelihood()
        low, high = likelihood.support
        y = likelihood.sample(torch.linspace(-1.0, 1.0, 50, dtype=torch.float64), generator=rng)
        assert likelihood.outcome_kind in ("real", "count", "class")
        assert (likelihood.outcome_kind != "real") == self.is_discrete
        assert bool(((y >= low) & (y <= high)).all())

    # Targets

    @both_dtypes
    def test_targets_inside_the_support_pass_unchanged(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        y = self.targets(rng, 10, dtype)
        assert torch.equal(self.likelihood().check_targets(y), y)
        if self.is_discrete:
            assert torch.equal(self.likelihood().check_targets(y.long()), y.double())

    def test_targets_outside_the_support_raise_a_sentence(self, rng: torch.Generator) -> None:
        for value, pattern in (*self.refused, (math.nan, "nan"), (math.inf, "inf")):
            y = self.targets(rng, 6, torch.float64)
            y[3] = value
            with pytest.raises(SupportError, match=pattern) as caught:
                self.likelihood().check_targets(y)
            message = str(caught.value)
            assert f"1 of 6 are not: the first is {value:g}, at index (3,)" in message
            assert "must" in message
            assert message.endswith(".")

    def test_targets_that_are_no_numbers_raise_a_sentence(self) -> None:
        with pytest.raises(DTypeError, match="y must be numbers, but is a str"):
            self.likelihood().check_targets("one")

    # Parameters and copies

    def test_learnable_values_give_the_same_likelihood_back(self, rng: torch.Generator) -> None:
        mean, variance, y = self._problem(rng, torch.float64)
        likelihood = self.likelihood()
        again = likelihood.with_learnable(likelihood.learnable())
        assert type(again) is type(likelihood)
        for method, other in zip(_methods(likelihood).values(), _methods(again).values(), strict=True):
            _assert_close(other(mean, variance, y), method(mean, variance, y), torch.float64)

    def test_densities_are_differentiable_in_the_learnable_values(self, rng: torch.Generator) -> None:
        mean, variance, y = self._problem(rng, torch.float64, n=4)
        likelihood = self.likelihood()
        names = list(likelihood.learnable())
        start = tuple(value.detach().double().requires_grad_() for value in likelihood.learnable().values())
        if not names:
            return

        def densities(*values: Tensor) -> tuple[Tensor, Tensor]:
            changed = likelihood.with_learnable(dict(zip(names, values, strict=True)))
            return changed.expected_log_density(mean, variance, y), changed.log_predictive_density(mean, variance, y)

        assert torch.autograd.gradcheck(densities, start)

    def test_unknown_learnable_names_raise_a_sentence(self) -> None:
        with pytest.raises(OptionError, match=r"values must have the names .* but has \['magic'\]"):
            self.likelihood().with_learnable({"magic": torch.zeros(())})

    def test_likelihood_is_frozen(self) -> None:
        with pytest.raises(FrozenInstanceError):
            self.likelihood().is_learned = False  # type: ignore[attr-defined]

    def test_copies_and_pickles_give_the_same_numbers(self, rng: torch.Generator) -> None:
        mean, variance, y = self._problem(rng, torch.float64)
        likelihood = self.likelihood()
        for copy in (deepcopy(likelihood), pickle.loads(pickle.dumps(likelihood))):
            assert torch.equal(copy.log_density(mean, y), likelihood.log_density(mean, y))
            assert torch.equal(copy.predictive_variance(mean, variance), likelihood.predictive_variance(mean, variance))

    # Helpers

    def _problem(self, rng: torch.Generator, dtype: torch.dtype, n: int = 20) -> tuple[Tensor, Tensor, Tensor]:
        """Return means in [-2, 2], variances in [0.1, 1] and targets."""
        mean = 4.0 * torch.rand(n, generator=rng, dtype=torch.float64) - 2.0
        variance = 0.1 + 0.9 * torch.rand(n, generator=rng, dtype=torch.float64)
        return mean.to(dtype), variance.to(dtype), self.targets(rng, n, dtype)

    def _samples(self, rng: torch.Generator, variance: float) -> tuple[Tensor, Tensor, Tensor]:
        """Return means, variances and samples of the targets on a new first axis."""
        mean = torch.tensor([-1.5, 0.1, 1.2], dtype=torch.float64)
        v = torch.full_like(mean, variance)
        f = mean + v.sqrt() * torch.randn(_NUM_SAMPLES, 3, dtype=torch.float64, generator=rng)
        return mean, v, self.likelihood().sample(f, generator=rng)


def _methods(likelihood: AbstractLikelihood) -> dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]:
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


def _assert_close(
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


def _panels(lower: float, upper: float) -> tuple[Tensor, Tensor]:
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


def _dense(function: Callable[[Tensor], Tensor], mean: Tensor, variance: Tensor) -> Tensor:
    """Integrate against a Gaussian by the trapezoidal rule on 8001 nodes over 12 standard deviations."""
    t = torch.linspace(-12.0, 12.0, 8001, dtype=torch.float64).unsqueeze(-1)
    weights = torch.exp(-0.5 * t.square()) * 0.003 / math.sqrt(2.0 * math.pi)
    return (weights * function(mean + variance.sqrt() * t)).sum(0)
