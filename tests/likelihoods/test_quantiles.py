import math

import pytest
import scipy.stats
import torch
from torch.testing import assert_close

from streamgp.errors import ShapeError
from streamgp.likelihoods import Poisson
from streamgp.likelihoods.quantiles import binary_quantiles, continuous_quantiles, threshold_cumulative


def poisson_cumulative(k, mean, variance):
    above = torch.tensor([k + 1.0], dtype=torch.float64)
    return threshold_cumulative(
        lambda g: Poisson().log_density(g, above) + above.log(),
        mode=above.log(),
        curvature=above,
        mean=torch.tensor([mean], dtype=torch.float64),
        variance=torch.tensor([variance], dtype=torch.float64),
    ).item()


@pytest.mark.parametrize("k", [0.0, 3.0, 2000.0, 1e6])
@pytest.mark.parametrize("shift", [-2.0, -0.001, 0.0, 1.0])
def test_threshold_probability_without_variance_is_the_distribution_function(k, shift):
    mean = math.log(k + 0.5) + shift
    assert poisson_cumulative(k, mean, 0.0) == pytest.approx(scipy.stats.poisson.cdf(k, math.exp(mean)), abs=3e-8)


def test_threshold_probability_of_many_counts_is_that_of_the_latent_value():
    expected = scipy.stats.norm.cdf((math.log(1e8) - 17.0) / 2.0)
    assert poisson_cumulative(1e8, 17.0, 4.0) == pytest.approx(expected, abs=1e-6)


def test_continuous_quantiles_invert_a_distribution_function_from_a_poor_start():
    center = torch.tensor([100.0, -3.0], dtype=torch.float64)
    quantiles = continuous_quantiles(torch.special.ndtr, center, torch.full_like(center, 1e-3), [0.01, 0.5])
    assert_close(quantiles, torch.special.ndtri(torch.tensor([0.01, 0.5], dtype=torch.float64)).expand(2, 2))


def test_binary_quantile_is_zero_as_long_as_the_probability_of_zero_reaches_it():
    quantiles = binary_quantiles(torch.tensor([0.2, 0.5, 0.9]), [0.5])
    assert_close(quantiles.squeeze(-1), torch.tensor([1.0, 0.0, 0.0]))


def test_probabilities_must_be_a_vector():
    with pytest.raises(ShapeError, match=r"probabilities must have one axis, but has shape \(1, 1\)"):
        binary_quantiles(torch.tensor([0.2]), torch.tensor([[0.5]]))
