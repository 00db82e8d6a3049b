import math

import numpy as np
import pytest
import torch
from gpytorch.likelihoods import LaplaceLikelihood
from tests.support.pool_laws import PoolLaws
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

from streamgp.acquisition import integrated_variance, response_variance
from streamgp.acquisition.response import expected_slope
from streamgp.errors import UnsupportedError
from streamgp.likelihoods import Bernoulli, Binomial, Gaussian, NegativeBinomial, Poisson, Volatility, from_gpytorch
from streamgp.testing.tolerances import approximation, rounding


class TestResponseVariance(PoolLaws):
    covers = "response_variance"

    def score(self, gp, pool_X, candidates=None, *, likelihood, pending=None):
        return response_variance(gp, pool_X, candidates, likelihood=likelihood, pending=pending)


def explained(gp, X, response, noise, *, targets):
    """What linear predictions explain, with covariances of responses and observations by quadrature."""
    nodes, weights = (torch.from_numpy(each) for each in np.polynomial.hermite_e.hermegauss(40))
    weights = (weights / weights.sum()).outer(weights / weights.sum())
    mean, covariance = gp.predict(X).mean, gp.predict(X, covariance=True).covariance
    gains = torch.zeros(len(X), dtype=X.dtype)
    for c in range(len(X)):
        for t in targets:
            deviation = covariance[c, c].sqrt()
            slope = covariance[c, t] / deviation
            rest = (covariance[t, t] - slope.square()).clamp_min(0.0).sqrt()
            values = response(mean[t] + slope * nodes.unsqueeze(-1) + rest * nodes)
            shared = (weights * values * deviation * nodes.unsqueeze(-1)).sum()
            gains[c] += shared.square() / (covariance[c, c] + noise[c])
    return gains


def test_it_is_what_linear_predictions_explain_of_prevalences(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(6, 2, generator=rng, dtype=torch.float64)
    prediction = gp.predict(X)
    nodes, weights = (torch.from_numpy(each) for each in np.polynomial.hermite_e.hermegauss(60))
    p = torch.sigmoid(prediction.mean.unsqueeze(-1) + prediction.variance.sqrt().unsqueeze(-1) * nodes)
    information = 20.0 * (p * (1.0 - p)) @ (weights / weights.sum())
    found = response_variance(gp, X, likelihood=Binomial(20), targets=[0, 2, 5])
    expected = explained(gp, X, torch.sigmoid, 1.0 / information, targets=[0, 2, 5])
    assert_close(found, expected, **rounding(torch.float64, condition=100.0))


def test_it_is_what_linear_predictions_explain_of_rates(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(6, 2, generator=rng, dtype=torch.float64)
    prediction = gp.predict(X)
    noise = (-prediction.mean - 0.5 * prediction.variance).exp() / 3.0
    found = response_variance(gp, X, likelihood=Poisson(3.0))
    assert_close(
        found, explained(gp, X, torch.exp, noise, targets=range(6)), **approximation(1e-6, "quadrature", scale=1e-4)
    )


def test_with_a_threshold_it_is_the_shares_of_both_variances(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(6, 2, generator=rng, dtype=torch.float64)
    mean, covariance = gp.predict(X).mean, gp.predict(X, covariance=True).covariance
    weights, latent = torch.rand(6, generator=rng, dtype=torch.float64), math.log(0.3 / 0.7)
    prevalence = response_variance(gp, X, likelihood=Binomial(20), weights=weights)
    found = response_variance(gp, X, likelihood=Binomial(20), weights=weights, threshold=0.3)
    # What is left is of the indicator: its covariance with a latent value by a fine sum over its own.
    z = torch.linspace(-9.0, 9.0, 200_001, dtype=torch.float64)
    p = torch.softmax(-0.5 * z.square(), dim=-1)
    spread, doubt, slopes = [], [], []
    for m, v in zip(mean, covariance.diagonal(), strict=True):
        f = m + v.sqrt() * z
        is_above, share = (f > latent).double(), torch.sigmoid(f)
        spread.append((p * share.square()).sum() - (p * share).sum().square())
        doubt.append((p * is_above).sum() * (1.0 - (p * is_above).sum()))
        slopes.append((p * is_above * z).sum() / v.sqrt())
    spread, doubt, slopes = (torch.stack(each) for each in (spread, doubt, slopes))
    rest = found - prevalence / (weights * spread).sum()
    gain = (weights * slopes.square() * covariance.square()).sum(-1) / (weights * doubt).sum()
    noise_and_variance = (covariance.square().sum(-1)) / integrated_variance(gp, X, likelihood=Binomial(20))
    assert_close(rest, gain / noise_and_variance, **approximation(1e-3, "quadrature", scale=1e-4))


@pytest.mark.parametrize(
    "likelihood", [Bernoulli("probit"), Bernoulli(), Binomial(9), Poisson(2.0), NegativeBinomial(), Gaussian()]
)
def test_of_a_narrow_belief_the_response_spreads_by_its_slope(likelihood):
    f, variance = torch.linspace(-2.0, 2.0, 9, dtype=torch.float64), torch.full((9,), 1e-10, dtype=torch.float64)
    slope = expected_slope(likelihood, f, variance)
    assert_close(
        likelihood.response_variance(f, variance), variance * slope.square(), **approximation(1e-8, "model", scale=0.0)
    )


def test_of_values_it_is_the_integrated_variance(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(6, 2, generator=rng, dtype=torch.float64)
    weights = torch.rand(6, generator=rng, dtype=torch.float64)
    found = response_variance(gp, X, likelihood=Gaussian(0.1), weights=weights)
    assert_close(found, integrated_variance(gp, X, likelihood=Gaussian(0.1), weights=weights))


def test_the_number_of_trials_changes_the_noise_and_not_the_prevalence(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(6, 2, generator=rng, dtype=torch.float64)
    one = response_variance(gp, X, likelihood=Binomial(1))
    assert_close(one, response_variance(gp, X, likelihood=Bernoulli()), **rounding(torch.float64, condition=100.0))
    assert (response_variance(gp, X, likelihood=Binomial(50)) > one).all()


def test_what_has_no_response_is_refused(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(3, 2, generator=rng, dtype=torch.float64)
    with pytest.raises(UnsupportedError, match="has the mean zero everywhere"):
        response_variance(gp, X, likelihood=Volatility())


def test_a_wrapped_likelihood_has_the_response_of_its_distribution(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(3, 2, generator=rng, dtype=torch.float64)
    likelihood = from_gpytorch(LaplaceLikelihood())
    found = response_variance(gp, X, likelihood=likelihood)
    assert_close(found, integrated_variance(gp, X, likelihood=likelihood))
