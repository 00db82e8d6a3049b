"""Laws of predicted moments, quantiles and samples."""

import math

import pytest
import torch
from torch import Tensor

from streamgp.errors import ValueRangeError
from streamgp.testing.likelihood_laws.problem import (
    AbstractLikelihoodProblem,
    both_dtypes,
)
from streamgp.testing.tolerances import approximation

__all__ = ["PredictionLaws"]

# Samples may be this many standard errors away from what they estimate: one in 1.7 million is.
_NUM_ERRORS = 5.0
_NUM_SAMPLES = 20_000


class PredictionLaws(AbstractLikelihoodProblem):
    """Predictions are those of samples."""

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
        assert likelihood.knows_cumulative == (reached is not None)
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
            torch.testing.assert_close(reached, total, **approximation(1e-6, "quadrature", scale=0.1))

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
        if self.likelihood().outcome_kind == "real" and dtype == torch.float64:  # all of its digits are drawn
            assert not torch.equal(first, first.float().double())

    def _samples(self, rng: torch.Generator, variance: float) -> tuple[Tensor, Tensor, Tensor]:
        """Return means, variances and samples of the targets on a new first axis."""
        mean = torch.tensor([-1.5, 0.1, 1.2], dtype=torch.float64)
        v = torch.full_like(mean, variance)
        f = mean + v.sqrt() * torch.randn(_NUM_SAMPLES, 3, dtype=torch.float64, generator=rng)
        return mean, v, self.likelihood().sample(f, generator=rng)
