"""A small pool of places, whose outcomes are known."""

import copy
from dataclasses import dataclass

import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel

import streamgp as sg
from streamgp.likelihoods import Binomial
from streamgp.pools import Training


@dataclass(frozen=True)
class Country:
    """Places, the latent function there, and what a survey of each finds."""

    X: torch.Tensor
    f: torch.Tensor
    y: torch.Tensor
    counts: torch.Tensor

    def survey(self, **options):
        """A learner of counts, with little work."""
        kernel = ScaleKernel(MaternKernel(1.5)).double()
        kernel.base_kernel.lengthscale = 1.0
        kernel.requires_grad_(False)  # known beforehand, so that fits are quick
        settings = {"likelihood": Binomial(30), "num_initial": 6, "refit": "never", "seed": 3, "kernel": kernel}
        settings["training"] = Training(max_iterations=2)
        return sg.PoolLearner(self.X, **(settings | options))


@pytest.fixture(scope="session")
def country():
    rng = torch.Generator().manual_seed(7)
    X = torch.rand(40, 2, generator=rng, dtype=torch.float64) * torch.tensor([10.0, 0.1]) + 5.0
    f = torch.sin(X[:, 0]) + 10.0 * (X[:, 1] - 5.05) - 1.0
    y = f + 0.1 * torch.randn(40, generator=rng, dtype=torch.float64)
    counts = torch.binomial(torch.full_like(f, 30.0), f.sigmoid(), generator=rng)
    return Country(X, f, y, counts)


@pytest.fixture(scope="session")
def fitted(country):
    learner = country.survey(threshold=0.3)
    members = list(range(0, 40, 5))
    learner.tell(members, country.counts[members])
    assert learner.fit_result
    return learner


@pytest.fixture
def surveyed(fitted):
    """A learner with every fifth place told, which may be changed."""
    return copy.copy(fitted)
