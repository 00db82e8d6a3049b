"""The likelihoods as a module."""

import pytest
import torch
from tests.support.model_laws import uniform
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError
from streamgp.likelihoods import Gaussian, Poisson


@pytest.mark.parametrize("o", [1, 2])
def test_it_adds_the_noise_that_posteriors_add(rng, o):
    gps = [random_sparse_gp(rng).gp for _ in range(o)]
    model = sg.OnlineGP(gps, [Gaussian(0.1), Gaussian(0.5)][:o])
    X = uniform(rng, 4, 3, 2)
    noisy, expected = model.likelihood(model(X)), model.posterior(X, observation_noise=True).distribution
    assert_close(noisy.mean, expected.mean)
    assert_close(noisy.covariance_matrix, expected.covariance_matrix)
    assert_close(model.likelihood.noise, torch.tensor([0.1, 0.5][:o], dtype=torch.float64))


def test_there_is_no_gaussian_noise_of_counts(rng):
    model = sg.OnlineGP(random_sparse_gp(rng).gp, Poisson())
    with pytest.raises(UnsupportedError, match="Poisson"):
        _ = model.likelihood.noise
