"""Laws of types, shapes and extreme numbers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from streamgp.testing.likelihood_laws.problem import (
    TRUNCATION,
    AbstractLikelihoodProblem,
    assert_close,
    both_dtypes,
    methods,
)

__all__ = ["NumberLaws"]


class NumberLaws(AbstractLikelihoodProblem):
    """Numbers of any type and shape give the same results."""

    def test_single_precision_agrees_with_double(self, rng: torch.Generator) -> None:
        problem = self._problem(rng, torch.float32)
        for name, method in methods(self.likelihood()).items():
            single, double = method(*problem), method(*(part.double() for part in problem))
            assert single.dtype == torch.float32, name
            assert_close(single, double.float(), torch.float32, name)

    def test_a_batched_call_equals_a_loop(self, rng: torch.Generator) -> None:
        mean, variance, _ = self._problem(rng, torch.float64, n=6)
        mean, variance = mean.reshape(2, 1, 3), variance[:3]
        y, likelihood = self.targets(rng, 12, torch.float64).reshape(4, 3), self.likelihood()
        asked: dict[str, Callable[[Tensor, Tensor, Tensor], Any]] = {**methods(likelihood)}
        if likelihood.knows_cumulative:
            asked["predictive_cumulative"] = likelihood.predictive_cumulative
        for name, method in asked.items():
            batched = method(mean, variance, y)
            for i in range(2):
                for j in range(4):
                    part = batched[i, j] if batched.shape[:2] == (2, 4) else batched[i, 0]
                    assert_close(part, method(mean[i, 0], variance, y[j]), torch.float64, name)

    def test_batched_quantiles_equal_a_loop(self) -> None:
        mean = torch.tensor([[-1.0, 0.3, 1.0], [0.5, 0.0, -0.5]], dtype=torch.float64)
        variance = torch.tensor([0.2, 0.0, 0.6], dtype=torch.float64)
        quantiles = self.likelihood().predictive_quantiles(mean, variance, [0.2, 0.7])
        loop = [
            self.likelihood().predictive_quantiles(row, variance, torch.tensor([0.2, 0.7], dtype=torch.float64))
            for row in mean
        ]
        if self.quantile_slack == 0.0:
            assert_close(quantiles, torch.stack(loop), torch.float64, truncation=TRUNCATION)
        assert quantiles.shape == (2, 3, 2)

    def test_no_observations_give_empty_results(self) -> None:
        empty = torch.zeros(2, 0, dtype=torch.float64)
        for name, method in methods(self.likelihood()).items():
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
        assert_close(value.detach(), expected, torch.float64)

    @both_dtypes
    def test_extreme_latent_values_stay_finite(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        mean = torch.tensor([-100.0, -30.0, 0.0, 30.0, 100.0], dtype=dtype).unsqueeze(-1)
        y = self.targets(rng, 10, dtype)
        for variance in (0.0, 1e-12, 1.0, 100.0):
            v = torch.full_like(mean, variance)
            for name, method in methods(self.likelihood()).items():
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
