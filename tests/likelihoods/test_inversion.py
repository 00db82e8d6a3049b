import math

import pytest
import scipy.stats
import torch
from torch.testing import assert_close

from streamgp.likelihoods.inversion import invert_cumulative
from streamgp.testing.tolerances import approximation, tolerance

LEVELS = torch.tensor([1e-4, 0.05, 0.5, 0.7, 0.95, 0.9999], dtype=torch.float64)


def inverted(distribution, *, center, deviation, is_whole=False, levels=LEVELS):
    """Quantiles, and how often the distribution function was asked for."""
    num_calls = 0

    def cumulative(x):
        nonlocal num_calls
        num_calls += 1
        return torch.as_tensor(distribution.cdf(x.numpy()))

    found = invert_cumulative(
        cumulative,
        levels.reshape(-1, 1),
        center=torch.tensor([center], dtype=torch.float64),
        deviation=torch.tensor([deviation], dtype=torch.float64),
        is_whole=is_whole,
    )
    return found.squeeze(-1), num_calls


@pytest.mark.parametrize("distribution", [scipy.stats.norm(3.0, 2.0), scipy.stats.t(2.1), scipy.stats.gumbel_r(-5.0)])
@pytest.mark.parametrize("start", [(0.0, 1.0), (100.0, 1e-3), (-1e4, 1e4)])
def test_quantiles_equal_those_of_scipy_wherever_the_search_begins(distribution, start):
    found, num_calls = inverted(distribution, center=start[0], deviation=start[1])
    limits = tolerance(torch.float64) | approximation(1e-10, "iteration")  # scipy's own
    assert_close(found, torch.as_tensor(distribution.ppf(LEVELS.numpy())), **limits)
    assert num_calls < 45


@pytest.mark.parametrize("rate", [0.01, 3.0, 200.0, 1e6])
@pytest.mark.parametrize("start", [1.0, 1e-3, 50.0])
def test_whole_numbers_equal_those_of_scipy_after_few_rounds(rate, start):
    distribution = scipy.stats.poisson(rate)
    found, num_calls = inverted(
        distribution, center=start * rate, deviation=start * math.sqrt(rate), is_whole=True, levels=LEVELS[1:-1]
    )
    assert_close(found, torch.as_tensor(distribution.ppf(LEVELS[1:-1].numpy())), rtol=0.0, atol=0.0)
    assert num_calls < 30


def test_whole_numbers_of_any_magnitude_are_found():
    distribution = scipy.stats.lognorm(20.0, scale=math.exp(200.0))
    found, num_calls = inverted(distribution, center=1e290, deviation=1e295, is_whole=True)
    assert_close(torch.as_tensor(distribution.cdf(found.numpy())), LEVELS, **approximation(1e-9, "iteration"))
    assert num_calls < 70


def test_quantiles_do_not_hang_on_what_else_is_asked_for():
    distribution = scipy.stats.t(3.0)
    together, _ = inverted(distribution, center=0.0, deviation=1.0)
    alone, _ = inverted(distribution, center=0.0, deviation=1.0, levels=LEVELS[2:3])
    assert torch.equal(together[2:3], alone)


def test_nothing_is_asked_for_without_inputs():
    empty = torch.empty(0, dtype=torch.float64)
    found = invert_cumulative(lambda x: x, LEVELS.reshape(-1, 1), center=empty, deviation=empty, is_whole=False)
    assert found.shape == (6, 0)
