import math

import pytest
import torch
from torch.testing import assert_close

from streamgp.errors import ShapeError, ValueRangeError
from streamgp.likelihoods import Volatility
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import approximation


class TestVolatility(LikelihoodLaws):
    covers = "Volatility"
    is_discrete = False
    support = (-60.0, 60.0)
    refused = ((float("-inf"), "Volatility targets must be finite numbers"),)

    def likelihood(self):
        return Volatility()

    def targets(self, rng, n, dtype):
        return torch.randn(n, generator=rng, dtype=dtype)


def test_scale_function_is_the_sum_of_the_paper():
    a, b, c = torch.rand(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    f = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    expected = [1e-6 + sum(a[j] * math.log1p(math.exp(b[j] * x + c[j])) for j in range(4)) for x in f.tolist()]
    assert_close(Volatility(a, b, c).scale(f), torch.stack(expected))


def test_default_start_has_unit_scale_at_zero_and_five_terms():
    likelihood = Volatility()
    assert len(likelihood.weights) == 5
    scale = likelihood.scale(torch.zeros((), dtype=torch.float64)).item()
    assert_close(scale, 1.0, **approximation(1e-6, "model"))  # the least scale there can be


def test_random_start_is_reproducible_and_within_its_ranges():
    first, again = (Volatility.random(torch.Generator().manual_seed(3), num_terms=7) for _ in range(2))
    assert torch.equal(first.slopes, again.slopes)
    assert len(first.weights) == 7
    assert bool((first.weights > 0.69).all())


def test_parameters_are_checked():
    with pytest.raises(ShapeError, match="vectors"):
        Volatility(torch.ones(2), torch.ones(3), torch.ones(3))
    with pytest.raises(ValueRangeError, match="slopes"):
        Volatility(torch.ones(1), torch.full((1,), 3.0), torch.ones(1))
    with pytest.raises(ValueRangeError, match="positive"):
        Volatility(-torch.ones(1), torch.ones(1), torch.ones(1))


def test_training_cannot_leave_the_ranges():
    values = {name: torch.full((5,), 50.0) for name in ("weights", "slopes", "offsets")}
    assert bool((Volatility().with_learnable(values).slopes < 3.0).all())


@pytest.mark.slow
@pytest.mark.parametrize("target", [0.0, 0.01, pytest.param(1.0, marks=pytest.mark.thorough), 40.0])
@pytest.mark.parametrize("variance", [pytest.param(0.2, marks=pytest.mark.thorough), 9.0])
def test_log_predictive_density_is_accurate_with_two_peaks_and_for_large_returns(target, variance):
    # Slopes of both signs: the scale is smallest in the middle.
    vector = torch.tensor([0.05, 0.05], dtype=torch.float64)
    likelihood = Volatility(vector, torch.tensor([2.5, -2.5], dtype=torch.float64), torch.zeros_like(vector) - 1.0)

    # The trapezoidal rule, which is exact for what is smooth between its nodes and vanishes at both ends.
    f, step = torch.linspace(-60.0, 60.0, 400_001, dtype=torch.float64), 120.0 / 400_000
    scale = likelihood.scale(f)
    log_density = torch.distributions.Normal(0.0, scale).log_prob(torch.tensor(target, dtype=torch.float64))
    log_weight = torch.distributions.Normal(0.3, math.sqrt(variance)).log_prob(f)
    expected = (log_density + log_weight).logsumexp(0) + math.log(step)
    mean = torch.tensor([0.3], dtype=torch.float64)
    value = likelihood.log_predictive_density(mean, torch.full_like(mean, variance), torch.full_like(mean, target))
    assert_close(value.item(), expected.item(), **approximation(1e-6, "quadrature"))
