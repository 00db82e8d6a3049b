import pytest
import torch
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition.samplers import read_sampler
from streamgp.gp import sample_paths
from streamgp.likelihoods import Gaussian
from streamgp.testing.tolerances import tolerance

DTYPES = [torch.float32, torch.float64]
SAMPLING = ["joint", "paths"]


def uniform(rng, *shape, dtype=torch.float64):
    return torch.rand(*shape, generator=rng, dtype=dtype)


def sparse_model(rng, dtype=torch.float64):
    return sg.OnlineGP(random_sparse_gp(rng, dtype=dtype).gp, Gaussian(0.01))


def test_draws_given_their_own_values_have_the_conditioned_moments(rng):
    model, s = sparse_model(rng), 4000
    points, values, candidates = uniform(rng, 3, 2), torch.randn(3, generator=rng).double(), uniform(rng, 4, 2)
    samples = read_sampler(model, "joint").sample(points, candidates, num_samples=s, generator=rng)
    samples = samples.given_own_values(torch.arange(3).expand(s, 3), values.expand(s, 3))
    conditioned = model.gps[0].condition(points, values, noise_variance=0.0).predict(candidates)
    assert ((samples.mean(0) - conditioned.mean).abs() < 5 * (conditioned.variance / s).sqrt() + 1e-6).all()
    variance = conditioned.variance
    assert ((samples.var(0) - variance).abs() < 5 * (2 / s) ** 0.5 * variance + 1e-6).all()


def test_draws_given_noisy_values_have_the_conditioned_moments(rng):
    model, s = sparse_model(rng), 4000
    points, values, candidates = uniform(rng, 3, 2), torch.randn(3, generator=rng).double(), uniform(rng, 4, 2)
    noise = torch.tensor([0.1, 0.2, 0.3]).double()
    samples = read_sampler(model, "joint").sample(points, candidates, num_samples=s, generator=rng)
    samples = samples.given_values(values, noise, rng)
    conditioned = model.gps[0].condition(points, values, noise_variance=noise).predict(candidates)
    assert ((samples.mean(0) - conditioned.mean).abs() < 5 * (conditioned.variance / s).sqrt() + 1e-6).all()
    variance = conditioned.variance
    assert ((samples.var(0) - variance).abs() < 5 * (2 / s) ** 0.5 * variance + 1e-6).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_paths_and_joint_draws_share_the_covariances_of_the_model(rng, dtype):
    model = sparse_model(rng, dtype)
    points, candidates = uniform(rng, 3, 2, dtype=dtype), uniform(rng, 5, 2, dtype=dtype)
    covariance = model.gps[0].predict(torch.cat([points, candidates])).covariance
    for sampling in SAMPLING:
        samples = read_sampler(model, sampling).sample(points, candidates, num_samples=1, generator=rng)
        assert_close(samples.points_covariance, covariance[:3, :3], **tolerance(dtype))
        assert_close(samples.cross_covariance, covariance[3:, :3], **tolerance(dtype))


def test_random_features_put_covariances_wrong_by_no_more_than_stated(rng):
    """Of all pairs of inputs and several sets of frequencies, beside the prior's own covariance."""
    gp, num_features = random_sparse_gp(rng).gp, 1024
    X = 3 * uniform(rng, 30, 2)
    exact = gp.process.prior.covariance(X, X)
    squares = []
    for _ in range(20):
        frequencies = sample_paths(gp.process, 1, rng, num_features=num_features).prior_features.frequencies
        phase = (X.unsqueeze(1) - X) @ frequencies.mT
        squares.append((float(gp.kernel.outputscale) * phase.cos().mean(-1) - exact).square())
    error = torch.stack(squares).mean(0).sqrt()
    bound = float(gp.kernel.outputscale) / (2 * num_features) ** 0.5
    assert error.diagonal().max() < 1e-9
    assert (error < 1.6 * bound).all()  # a standard deviation from 20 sets is known within 16 %
    assert error.max() > 0.5 * bound


@pytest.mark.parametrize("seed", range(8))
def test_draws_given_values_where_all_is_known_stay_there(seed):
    """The covariance there is rounding of the prior's, which a factor of it alone would take for information."""
    rng = torch.Generator().manual_seed(seed)
    x, values = uniform(rng, 1, 2), torch.tensor([0.0, 1.0], dtype=torch.float64)
    gp = random_sparse_gp(rng).gp.condition(x, values[:1], noise_variance=0.0)
    sampler = read_sampler(sg.OnlineGP(gp, Gaussian(0.01)), "joint")
    samples = sampler.sample(torch.cat([x, x + 1e-9]), x, num_samples=3, generator=rng)
    given = samples.given_own_values(torch.arange(2).expand(3, 2), values.expand(3, 2))
    assert (given.abs() < 1).all()
