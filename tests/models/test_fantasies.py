"""Fantasies of counts and classes: on average they change no mean, and Gaussian ones teach somewhat more."""

import pytest
import torch
from botorch.sampling import IIDNormalSampler
from tests.support.model_laws import uniform
from tests.support.problems import random_sparse_gp

import streamgp as sg
from streamgp.likelihoods import Bernoulli, Binomial, Gaussian, Poisson

LIKELIHOODS = [Gaussian(0.2), Poisson(3.0), Bernoulli(), Bernoulli("probit"), Binomial(5)]
NUM_FANTASIES = 4000


@pytest.mark.parametrize("observations", [False, True])
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda one: type(one).__name__)
def test_the_mean_of_fantasies_is_the_mean(rng, likelihood, observations):
    model = sg.OnlineGP(random_sparse_gp(rng).gp, likelihood)
    X, W = uniform(rng, 2, 2), uniform(rng, 4, 2)
    sampler = IIDNormalSampler(torch.Size([NUM_FANTASIES]), seed=0)
    futures = model.fantasize(X, sampler, observations=observations).posterior(W).mean
    error = futures.std(0) / NUM_FANTASIES**0.5
    # Five standard errors; sites of real outcomes keep the mean but for their approximation, measured below 0.02.
    slack = 0.02 if observations and not isinstance(likelihood, Gaussian) else 0.0
    assert ((futures.mean(0) - model.posterior(W).mean).abs() < 5 * error + slack).all()


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda one: type(one).__name__)
def test_gaussian_fantasies_teach_somewhat_more_than_real_outcomes(rng, likelihood):
    model = sg.OnlineGP(random_sparse_gp(rng).gp, likelihood)
    X = uniform(rng, 1, 2)
    sampler = IIDNormalSampler(torch.Size([500]), seed=0)
    gaussian, real = (
        model.fantasize(X, sampler, observations=observations).posterior(X).variance.mean()
        for observations in (False, True)
    )
    assert gaussian < model.posterior(X).variance
    # The curvature of a count is averaged before its inverse is taken, so by Jensen's inequality too much is learned:
    # over eight such models the variances have ratios of 0.72 to 0.99 for counts, and 0.95 to 1.00 for classes.
    least = 0.7 if isinstance(likelihood, Poisson) else 0.94
    assert least * real < gaussian < 1.01 * real
