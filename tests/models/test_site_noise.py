"""The noise of observations to come."""

import pytest
import torch
from tests.support.model_laws import uniform
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

from streamgp.gp import Prediction
from streamgp.likelihoods import Bernoulli, Binomial, Gaussian, NegativeBinomial, Poisson, StudentT, Volatility
from streamgp.models.observation_model import expected_noise_variance
from streamgp.testing.tolerances import tolerance

LIKELIHOODS = [
    Bernoulli(),
    Bernoulli("probit"),
    Binomial(10),
    NegativeBinomial(),
    Poisson(2.0),
    StudentT(),
    Volatility(),
]


def prediction(rng):
    return Prediction(random_sparse_gp(rng).gp.process, uniform(rng, 5, 2))


def test_of_a_poisson_count_it_is_one_over_the_expected_rate(rng):
    one = prediction(rng)
    rate = 2.0 * torch.exp(one.mean + one.variance / 2)
    assert_close(expected_noise_variance(Poisson(2.0), one), 1 / rate, **tolerance(torch.float64))


def test_of_gaussian_observations_it_is_their_mean_noise(rng):
    noise = torch.tensor([0.1, 0.3], dtype=torch.float64)
    assert_close(expected_noise_variance(Gaussian(noise), prediction(rng)), noise.mean().reshape(1))


def test_of_two_classes_it_averages_over_both(rng):
    one = prediction(rng)
    likelihood = Bernoulli("probit")
    p = likelihood.predictive_mean(one.mean, one.variance)
    curvature = sum(
        weight * likelihood.expected_derivatives(one.mean, one.variance, torch.full_like(p, y))[1]
        for y, weight in ((0.0, 1 - p), (1.0, p))
    )
    assert_close(expected_noise_variance(likelihood, one), -1 / curvature, **tolerance(torch.float64))


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda one: type(one).__name__)
def test_of_every_likelihood_it_is_positive_and_differentiable(rng, likelihood):
    gp = random_sparse_gp(rng).gp
    X = uniform(rng, 3, 2).requires_grad_(True)
    noise = expected_noise_variance(likelihood, Prediction(gp.process, X))
    assert ((noise > 0) & torch.isfinite(noise)).all()
    (gradient,) = torch.autograd.grad(noise.sum(), X)
    assert torch.isfinite(gradient).all()
