import math

import pytest
import torch

from streamgp.likelihoods import Gaussian, Poisson
from streamgp.testing.tolerances import rounding, within
from streamgp.training.collapsed import collapsed_bound
from streamgp.training.features import Observed
from streamgp.training.full_batch import bound_of, trace_slack
from streamgp.training.priors import likelihood_bounds, target_variance
from streamgp.training.sites_bound import optimal_sites, sites_bound
from streamgp.training.starting import starting_hyperparameters


@pytest.fixture
def inputs(rng):
    return torch.rand(12, 2, generator=rng, dtype=torch.float64)


def start(data, likelihood):
    return starting_hyperparameters(
        data, likelihood=likelihood, kernel=None, mean=None, start=None, latent_variance=1.0
    )


def test_the_bound_is_that_of_the_likelihood(inputs):
    data = Observed(inputs, inputs[:, 0].round())
    gaussian, counts = start(data, Gaussian(0.1)), start(data, Poisson())
    sites, _ = optimal_sites(counts, data)
    assert torch.equal(
        bound_of(gaussian, data, None, beta=1.0),
        collapsed_bound(gaussian, data, gaussian.likelihood.gaussian_noise_variance),
    )
    assert torch.equal(bound_of(counts, data, sites, beta=1.0), sites_bound(counts, data, sites))


def test_targets_that_do_not_vary_count_as_of_unit_variance(inputs):
    varied = Observed(inputs, inputs[:, 0])
    constant = Observed(inputs, torch.full_like(inputs[:, 0], 3.0))
    assert target_variance(varied, is_gaussian=True) == pytest.approx(float(inputs[:, 0].var(correction=0)))
    assert target_variance(varied, is_gaussian=False) == 1.0
    assert target_variance(constant, is_gaussian=True) == 1.0


def test_only_noise_that_is_learned_has_a_bound(inputs):
    data = Observed(inputs, inputs[:, 0])
    (lower, upper) = likelihood_bounds(start(data, Gaussian(0.1)), data)["noise_variance"]
    least = 1e-6 * float(inputs[:, 0].var(correction=0))
    assert lower == pytest.approx(math.log(least), **within(rounding(torch.float64, condition=10.0)))
    assert upper == math.inf
    assert likelihood_bounds(start(data, Gaussian(0.1, is_learned=False)), data) == {}
    assert likelihood_bounds(start(data, Poisson()), data) == {}


def test_slack_is_counted_in_units_of_the_noise(inputs):
    data = Observed(inputs, inputs[:, 0])
    once, twice = (trace_slack(start(data, Gaussian(noise)), data) for noise in (0.2, 0.1))
    assert once > 0.0
    assert twice == pytest.approx(2.0 * once, **within(rounding(torch.float64, condition=100.0)))
