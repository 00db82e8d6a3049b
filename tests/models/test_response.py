"""Posteriors of rates and probabilities."""

import math

import pytest
import torch
from botorch.acquisition import PosteriorMean, qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.sampling import SobolQMCNormalSampler
from botorch.sampling.get_sampler import get_sampler
from gpytorch.kernels import RBFKernel, ScaleKernel
from tests.support.model_laws import uniform
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.likelihoods import Bernoulli, Binomial, Gaussian, Poisson
from streamgp.testing.tolerances import judgement, rounding, tolerance, within

TIGHT = tolerance(torch.float64)


def model(rng):
    gps = [random_sparse_gp(rng).gp for _ in range(3)]
    return sg.OnlineGP(gps, [Poisson(), Gaussian(0.1), Bernoulli()], scale="response")


def test_the_moments_of_a_rate_are_log_normal(rng):
    responses, X = model(rng), uniform(rng, 4, 2)
    latent = responses.on_scale("latent").posterior(X)
    m, v = latent.mean[:, 0], latent.variance[:, 0]
    posterior = responses.posterior(X)
    assert_close(posterior.mean[:, 0], torch.exp(m + v / 2), **TIGHT)
    assert_close(posterior.variance[:, 0], torch.exp(2 * m + v) * torch.expm1(v), **TIGHT)
    assert_close(posterior.mean[:, 1], latent.mean[:, 1], **TIGHT)
    assert_close(posterior.variance[:, 1], latent.variance[:, 1], **TIGHT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("amplitude", [5.0, 80.0, 400.0, 1e4, 1e30])
@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial", "gamma"])
def test_the_variance_of_a_rate_is_finite_however_little_is_known(amplitude, likelihood, dtype):
    kernel = ScaleKernel(RBFKernel()).to(dtype).initialize(outputscale=amplitude)
    gp = sg.SparseGP.from_prior(kernel, torch.rand(3, 1, dtype=dtype))
    x = torch.full((1, 1), 0.5, dtype=dtype)
    posterior = sg.OnlineGP(gp, likelihood, scale="response").posterior(x)
    exact = math.exp(2 * amplitude) * -math.expm1(-amplitude) if amplitude < 300 else math.inf
    assert torch.isfinite(posterior.variance).all()
    assert torch.isfinite(posterior.mean).all()
    if exact < 0.01 * torch.finfo(dtype).max:
        assert float(posterior.variance) == pytest.approx(exact, **within(rounding(dtype, condition=1e3)))


@pytest.mark.parametrize("likelihood", [Poisson(exposure=3.0), Binomial(7), sg.likelihoods.StudentT(5.0, 0.1)])
def test_the_variance_of_a_response_is_that_of_its_samples(rng, likelihood):
    model = sg.OnlineGP(random_sparse_gp(rng).gp, likelihood, scale="response")
    posterior = model.posterior(uniform(rng, 2, 2))
    torch.manual_seed(0)
    drawn = posterior.rsample(torch.Size([40_000]))
    assert_close(drawn.var(0), posterior.variance, **judgement(relative=0.2))


def test_samples_are_responses_to_latent_samples(rng):
    responses, X = model(rng), uniform(rng, 4, 2)
    sampler = SobolQMCNormalSampler(torch.Size([8]), seed=0)
    latent, drawn = sampler(responses.on_scale("latent").posterior(X)), sampler(responses.posterior(X))
    expected = torch.stack([latent[..., 0].exp(), latent[..., 1], torch.sigmoid(latent[..., 2])], dim=-1)
    assert_close(drawn, expected, **TIGHT)
    assert get_sampler(responses.posterior(X), torch.Size([4]))(responses.posterior(X)).shape == (4, 4, 3)


def test_with_noise_outcomes_are_predicted(rng):
    responses, X = model(rng), uniform(rng, 2, 2)
    posterior = responses.posterior(X, observation_noise=True)
    torch.manual_seed(0)
    drawn = posterior.rsample(torch.Size([40_000]))
    assert (drawn[..., 0] == drawn[..., 0].round()).all()
    assert set(drawn[..., 2].unique().tolist()) == {0.0, 1.0}
    error = (posterior.variance / 40_000).sqrt()
    assert ((drawn.mean(0) - posterior.mean).abs() < 5 * error).all()
    assert_close(drawn.var(0), posterior.variance, **judgement(relative=0.2))
    assert (posterior.variance > responses.posterior(X).variance).all()


def test_conditioned_models_stay_on_their_scale(rng):
    counts = model(rng).subset_output([0])
    X = uniform(rng, 3, 2)
    after = counts.condition_on_observations(X, torch.full((3, 1), 9.0, dtype=torch.float64))
    assert (after.posterior(X).mean > counts.posterior(X).mean).all()
    W = uniform(rng, 2, 1, 2).requires_grad_(True)
    PosteriorMean(after)(W).sum().backward()
    value = qLogExpectedImprovement(after, best_f=3.0)(W)
    value.sum().backward()
    assert torch.isfinite(W.grad).all()


@pytest.mark.parametrize("prune_baseline", [True, False])
def test_noisy_improvement_of_rates_caches_no_root(rng, prune_baseline):
    counts, X = model(rng).subset_output([0]), uniform(rng, 6, 2)
    function = qLogNoisyExpectedImprovement(counts, X, prune_baseline=prune_baseline)
    assert not function._cache_root
    assert torch.isfinite(function(uniform(rng, 2, 1, 2))).all()
