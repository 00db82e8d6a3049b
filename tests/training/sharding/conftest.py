from dataclasses import replace

import pytest
import torch

import streamgp as sg
from streamgp.training.features import Observed
from streamgp.training.starting import starting_hyperparameters


@pytest.fixture
def data(rng):
    X = 10.0 * torch.rand(60, 2, generator=rng, dtype=torch.float64)
    return X, torch.sin(X[:, 0]) + 0.1 * torch.randn(60, generator=rng, dtype=torch.float64)


@pytest.fixture
def cut():
    """Divides rows into shards of given sizes."""
    return lambda data, sizes: list(zip(*(part.split(sizes) for part in data), strict=True))


@pytest.fixture
def problem(rng):
    """Makes counts or classes, and hyperparameters to start from."""

    def make(likelihood, n=40, m=6):
        X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
        f = 2.0 * torch.sin(5.0 * X[:, 0])
        is_class = isinstance(likelihood, sg.likelihoods.Bernoulli)
        data = Observed(X, (f > 0).double() if is_class else torch.poisson(f.exp(), generator=rng))
        start = starting_hyperparameters(
            data, likelihood=likelihood, kernel=None, mean=None, start=None, latent_variance=1.0
        )
        return data, replace(start, inducing_points=X[:m] + 0.01, extra={})

    return make
