import math

import pytest
import scipy.stats
import torch
from torch.testing import assert_close

from streamgp.errors import ShapeError
from streamgp.likelihoods import Binomial, NegativeBinomial, Poisson
from streamgp.likelihoods.quantiles import binary_quantiles, continuous_quantiles, threshold_cumulative
from streamgp.testing.tolerances import approximation


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
    expected = scipy.stats.poisson.cdf(k, math.exp(mean))
    assert_close(poisson_cumulative(k, mean, 0.0), float(expected), **approximation(3e-8, "quadrature"))


def test_threshold_probability_of_many_counts_is_that_of_the_latent_value():
    expected = scipy.stats.norm.cdf((math.log(1e8) - 17.0) / 2.0)
    assert_close(poisson_cumulative(1e8, 17.0, 4.0), float(expected), **approximation(1e-6, "model"))


@pytest.mark.parametrize("mean", [50.0, 200.0, 500.0])
def test_quantiles_of_counts_too_large_for_their_noise_to_matter_are_those_of_the_rate(mean):
    m, p = torch.tensor([mean], dtype=torch.float64), [0.01, 0.5, 0.99]
    found = Poisson().predictive_quantiles(m, m, p)[0]
    expected = mean + math.sqrt(mean) * torch.special.ndtri(torch.tensor(p, dtype=torch.float64))
    assert_close(found.log(), expected, **approximation(1e-5, "model"))


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(2.0), Binomial(5)])
def test_cumulative_probabilities_of_the_first_counts_are_those_of_each(likelihood):
    mean, variance = torch.tensor([[0.3, 1.5], [0.2, 0.0]], dtype=torch.float64)
    first = likelihood.first_cumulatives(mean, variance)
    each = likelihood.predictive_cumulative(mean, variance, torch.arange(len(first)).double().unsqueeze(-1))
    assert_close(first, each, **approximation(1e-7, "quadrature"))
    # Tails are differences from one, so that probabilities are summed in double precision whatever the dtype.
    single = likelihood.first_cumulatives(mean.float(), variance.float())[: len(first)]
    assert_close(single.double(), first[: len(single)], **approximation(1e-6, "quadrature", scale=0.2))
    assert single.dtype == torch.float64


def test_continuous_quantiles_invert_a_distribution_function_from_a_poor_start():
    center = torch.tensor([100.0, -3.0], dtype=torch.float64)
    quantiles = continuous_quantiles(torch.special.ndtr, center, torch.full_like(center, 1e-3), [0.01, 0.5])
    assert_close(quantiles, torch.special.ndtri(torch.tensor([0.01, 0.5], dtype=torch.float64)).expand(2, 2))


def test_binary_quantile_is_zero_as_long_as_the_probability_of_zero_reaches_it():
    quantiles = binary_quantiles(torch.tensor([0.2, 0.5, 0.9]), [0.5])
    assert_close(quantiles.squeeze(-1), torch.tensor([1.0, 0.0, 0.0]))


def test_probabilities_must_be_a_vector():
    with pytest.raises(ShapeError, match="probabilities"):
        binary_quantiles(torch.tensor([0.2]), torch.tensor([[0.5]]))


@pytest.mark.parametrize("dtype", [pytest.param(torch.float32, marks=pytest.mark.thorough), torch.float64])
@pytest.mark.parametrize(("mean", "variance"), [(0.5, 0.3), (3.0, 4.0), (50.0, 100.0)])
@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(2.0), NegativeBinomial(0.05), Binomial(10**6)])
def test_quantiles_of_counts_rise_with_their_probabilities(likelihood, mean, variance, dtype):
    probabilities = torch.linspace(0.99, 0.01, 50)
    moments = torch.tensor([[mean], [variance]], dtype=dtype)
    quantiles = likelihood.predictive_quantiles(*moments, probabilities)
    assert bool((quantiles.diff(dim=-1) <= 0.0).all())


def test_quantiles_of_huge_counts_are_those_of_a_gamma_mixture():
    # Beyond 1e16 a negative binomial count is its rate times a Gamma variable, to 1e-8.
    m, s, r = 50.0, 10.0, 2.0
    quantile = NegativeBinomial(r).predictive_quantiles(
        torch.tensor([m]).double(), torch.tensor([s * s]).double(), [0.3]
    )
    t = torch.linspace(-9.0, 9.0, 4001, dtype=torch.float64)
    weights = torch.softmax(-0.5 * t.square(), 0)
    below = torch.special.gammainc(torch.full_like(t, r), r * quantile.log().sub(m + s * t).exp().squeeze(0))
    assert_close(float(weights @ below), 0.3, **approximation(1e-6, "quadrature"))
