"""Laws of responses, of the data of rows, of targets and of parameters."""

import math
import pickle
from copy import deepcopy
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from torch import Tensor

from streamgp.errors import DTypeError, OptionError, SupportError, UnsupportedError, ValueRangeError
from streamgp.testing.likelihood_laws.problem import (
    AbstractLikelihoodProblem,
    assert_close,
    both_dtypes,
    dense,
    methods,
)

__all__ = ["ConstantLaws"]


class ConstantLaws(AbstractLikelihoodProblem):
    """Laws of the constants that a likelihood holds, and of values that it refuses."""

    # Responses and rows

    @both_dtypes
    def test_the_response_is_the_mean_without_variance(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        mean, _, _ = self._problem(rng, dtype)
        unit = self.likelihood().per_unit()
        assert_close(unit.response(mean), unit.predictive_mean(mean, torch.zeros_like(mean)), dtype)

    @both_dtypes
    def test_the_conditional_mean_is_the_mean_without_variance(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        mean, _, _ = self._problem(rng, dtype)
        likelihood = self.likelihood()
        expected = likelihood.predictive_mean(mean, torch.zeros_like(mean))
        assert_close(likelihood.conditional_mean(mean).expand(expected.shape), expected, dtype)

    def test_the_inverse_response_takes_back_the_response(self, rng: torch.Generator) -> None:
        likelihood = self.likelihood()
        if not likelihood.has_response:
            with pytest.raises(UnsupportedError, match="has no response"):
                likelihood.inverse_response(torch.zeros(2))
            return
        mean, _, _ = self._problem(rng, torch.float64)
        assert_close(likelihood.inverse_response(likelihood.response(mean)), mean, torch.float64)

    def test_the_variance_of_the_response_equals_a_dense_reference(self, rng: torch.Generator) -> None:
        mean, variance, _ = self._problem(rng, torch.float64)
        likelihood = self.likelihood()
        center = dense(likelihood.response, mean, variance)
        expected = dense(lambda f: (likelihood.response(f) - center).square(), mean, variance)
        assert_close(likelihood.response_variance(mean, variance), expected, torch.float64)

    def test_responses_out_of_range_raise_a_sentence(self) -> None:
        likelihood = self.likelihood()
        for end in likelihood.response_range if likelihood.has_response else ():
            with pytest.raises(ValueRangeError, match=r"response of a .* must be .* but is"):
                likelihood.inverse_response(torch.tensor([end]))

    def test_the_likelihood_of_some_rows_has_their_constants(self, rng: torch.Generator) -> None:
        mean, _, y = self._problem(rng, torch.float64, n=4)
        index = torch.tensor([2, 0])
        likelihood = self.likelihood()
        assert_close(
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
        assert_close(scaled - math.log(2.0), likelihood.log_density(mean, y), torch.float64)

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
        for method, other in zip(methods(likelihood).values(), methods(again).values(), strict=True):
            assert_close(other(mean, variance, y), method(mean, variance, y), torch.float64)

    def test_what_is_not_learned_stays(self) -> None:
        if not self.likelihood().learnable() or not hasattr(self.likelihood(), "is_learned"):
            return
        kept = replace(self.likelihood(), is_learned=False)  # type: ignore[type-var]
        assert kept.learnable() == {}
        assert kept.with_learnable({}) is kept
        assert float(kept.log_prior()) == 0.0

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
