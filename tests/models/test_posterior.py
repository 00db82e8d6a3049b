"""The lazy posterior beside BoTorch's own."""

import copy
import pickle

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.posteriors import GPyTorchPosterior, PosteriorList
from botorch.sampling import IIDNormalSampler, SobolQMCNormalSampler
from botorch.sampling.get_sampler import get_sampler
from tests.support.model_laws import uniform
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.likelihoods import Gaussian
from streamgp.testing.tolerances import tolerance

TIGHT = tolerance(torch.float64)


def posterior(rng, num_outputs, *batch, q=3):
    gps = [random_sparse_gp(rng).gp for _ in range(num_outputs)]
    X = uniform(rng, *batch, q, 2)
    return sg.OnlineGP(gps, Gaussian(0.1)).posterior(X, observation_noise=True)


@pytest.mark.parametrize("o", [1, 2])
@pytest.mark.parametrize("batch", [(), (4,)])
@pytest.mark.parametrize("q", [1, 3])
def test_the_same_base_samples_give_the_same_samples_as_in_botorch(rng, o, batch, q):
    ours = posterior(rng, o, *batch, q=q)
    theirs = GPyTorchPosterior(ours.distribution)
    assert ours.base_sample_shape == theirs.base_sample_shape
    assert ours.batch_range == theirs.batch_range
    assert ours.batch_shape == theirs.batch_shape
    assert ours._extended_shape() == theirs._extended_shape()
    for kind in (SobolQMCNormalSampler, IIDNormalSampler):
        sampler = kind(torch.Size([6]), seed=0)
        assert_close(sampler(ours), sampler(theirs), **TIGHT)
    value = torch.tensor([0.1, 0.7], dtype=torch.float64)
    assert_close(ours.quantile(value), theirs.quantile(value), **TIGHT)
    assert_close(ours.density(value), theirs.density(value), **TIGHT)


def test_samplers_are_found_for_it(rng):
    assert isinstance(get_sampler(posterior(rng, 1), torch.Size([4])), SobolQMCNormalSampler)
    assert isinstance(get_sampler(posterior(rng, 2), torch.Size([4])), SobolQMCNormalSampler)
    many = PosteriorList(posterior(rng, 1), posterior(rng, 1))
    assert get_sampler(many, torch.Size([4]))(many).shape == (4, 3, 2)


@pytest.mark.parametrize("o", [1, 2])
def test_a_scalarized_posterior_equals_that_of_botorch_and_stays_lazy(rng, o):
    gps = [random_sparse_gp(rng).gp for _ in range(o)]
    model, X = sg.OnlineGP(gps, Gaussian(0.1)), uniform(rng, 4, 3, 2)
    transform = ScalarizedPosteriorTransform(torch.tensor([-2.0, 0.5][:o], dtype=torch.float64), offset=0.3)
    ours = model.posterior(X, posterior_transform=transform)
    theirs = transform(GPyTorchPosterior(model.posterior(X).distribution))
    assert_close(ours.mean, theirs.mean, **TIGHT)
    assert all("covariance" not in vars(term.prediction) for term in ours.outputs[0].terms)
    assert_close(ours.variance, theirs.variance, **TIGHT)
    assert_close(ours.distribution.covariance_matrix, theirs.distribution.covariance_matrix, **TIGHT)


def test_samples_have_the_predicted_moments(rng):
    ours = posterior(rng, 2, q=2)
    torch.manual_seed(0)
    samples = ours.rsample(torch.Size([40_000]))
    error = (ours.variance / 40_000).sqrt()
    assert ((samples.mean(0) - ours.mean).abs() < 5 * error).all()
    assert ((samples.var(0) / ours.variance - 1).abs() < 5 * (2 / 40_000) ** 0.5).all()
    assert ours.rsample().shape == (1, 2, 2)


def test_base_samples_of_another_shape_are_refused(rng):
    ours = posterior(rng, 1)
    with pytest.raises(RuntimeError, match="axes"):
        ours.rsample_from_base_samples(torch.Size([5]), torch.zeros(4, 3, dtype=torch.float64))


def test_copies_and_pickles_predict_identically(rng):
    ours = posterior(rng, 2)
    for twin in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert torch.equal(twin.mean, ours.mean)
        assert torch.equal(twin.variance, ours.variance)
