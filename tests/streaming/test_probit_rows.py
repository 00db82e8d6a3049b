import numpy as np
import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods import Bernoulli, Poisson
from streamgp.streaming.probit_rows import is_probit, log_probability, moment_sites, probability
from streamgp.testing.tolerances import approximation, tolerance, within

PROBIT = Bernoulli("probit")


def _beliefs(rng):
    mean = 4.0 * torch.randn(6, 1, 5, generator=rng, dtype=torch.float64)
    mean[0, 0, 0], mean[0, 0, 1] = -50.0, 50.0
    variance = torch.rand(6, 1, 5, generator=rng, dtype=torch.float64) + 0.01
    return mean, variance, (torch.rand(1, 5, generator=rng) < 0.5).double()


@pytest.mark.parametrize(("likelihood", "expected"), [(PROBIT, True), (Bernoulli("logit"), False), (Poisson(), False)])
def test_two_classes_with_the_probit_link_are_recognized(likelihood, expected):
    assert is_probit(likelihood) is expected


def test_probabilities_are_those_of_the_likelihood(rng):
    mean, variance, y = _beliefs(rng)
    close = tolerance(torch.float64)
    found = torch.from_numpy(probability(mean.numpy(), variance.numpy()))
    assert_close(found, PROBIT.predictive_mean(mean, variance), **close)
    found = torch.from_numpy(log_probability(mean.numpy(), variance.numpy(), y.numpy()))
    assert_close(found, PROBIT.log_predictive_density(mean, variance, y), **close)


def test_sites_give_the_moments_of_the_exact_posterior(rng):
    mean, variance, y = _beliefs(rng)
    targets, noise = moment_sites(mean.numpy(), variance.numpy(), y.numpy(), 1e-12)
    first, second = PROBIT.log_predictive_derivatives(mean, variance, y)
    total = variance.numpy() + noise
    close = tolerance(torch.float64)
    assert_close(torch.from_numpy((targets - mean.numpy()) / total), first, **close)
    assert_close(torch.from_numpy(-1.0 / total), second, **close)


def test_a_certain_outcome_says_nothing_and_a_surprise_stays_finite():
    mean = np.array([60.0, -60.0]).reshape(2, 1, 1)
    targets, noise = moment_sites(mean, np.ones((2, 1, 1)), np.ones((1, 1)), 1e-6)
    assert np.isfinite(targets).all()
    assert noise[0] == pytest.approx(1e6, **within(approximation(1e-3, "model", scale=0.0)))
    assert 0.0 < noise[1] < 2.0


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_surprise_beyond_all_numbers_is_learned_without_a_warning():
    mean, variance = np.array([-1e4, 1e4, 1e4]), np.full(3, 1e-6)
    targets, noise = moment_sites(mean, variance, np.array([1.0, 0.0, 1.0]), 1e-12)
    assert np.isfinite(targets).all()
    assert np.isfinite(noise).all()
