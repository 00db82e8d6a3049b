"""What the better of points that are compared is worth."""

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition.rules.improvement import ExpectedUtilityOfBest
from streamgp.loops.suggest import make_context
from streamgp.testing.tolerances import approximation


@pytest.fixture
def context(rng):
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2, likelihood="preference", num_initial=4)
    X = torch.rand(8, 2, 2, generator=rng, dtype=torch.float64)
    wins = (X[:, 0] - 0.4).square().sum(-1) < (X[:, 1] - 0.4).square().sum(-1)
    X = torch.where(wins[:, None, None], X, X.flip(1))
    optimizer.tell_comparison(X[:, 0], X[:, 1])
    return make_context(optimizer._refitted(), optimizer._settings)


def _expected_maximum(posterior):
    """Of two normal numbers, in closed form."""
    mean, covariance = posterior.mean.squeeze(-1), posterior.distribution.covariance_matrix
    spread = (covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]).sqrt()
    z = (mean[0] - mean[1]) / spread
    normal = torch.distributions.Normal(0.0, 1.0)
    return mean[0] * normal.cdf(z) + mean[1] * normal.cdf(-z) + spread * normal.log_prob(z).exp()


def test_two_points_are_worth_the_expected_larger_utility(context):
    X = torch.tensor([[0.2, 0.3], [0.8, 0.6]], dtype=torch.float64)
    value = ExpectedUtilityOfBest(num_samples=4096).function(context, seed=0)(X).squeeze()
    expected = _expected_maximum(context.model.posterior(X))
    assert_close(value, expected, **approximation(2e-3, "quasi-Monte Carlo with 4096 samples"))


def test_one_point_is_worth_the_larger_utility_of_it_and_the_best_known(context):
    X = torch.tensor([[0.8, 0.6]], dtype=torch.float64)
    rule = ExpectedUtilityOfBest(num_samples=4096, has_rival=True)
    value = rule.function(context, seed=0)(X).squeeze()
    expected = _expected_maximum(context.model.posterior(torch.cat([X, context.centers()[:1]])))
    assert_close(value, expected, **approximation(2e-3, "quasi-Monte Carlo with 4096 samples"))


def test_the_first_of_two_points_has_the_largest_mean_and_a_single_one_is_a_challenger(context):
    grid = torch.cartesian_prod(*[torch.linspace(0.0, 1.0, 41, dtype=torch.float64)] * 2)
    highest = context.model.posterior(grid).mean.max()
    first, second = context.model.posterior(ExpectedUtilityOfBest().propose(context, 2, seed=0)).mean.squeeze(-1)
    assert first >= highest - 1e-3 * highest.abs()
    assert second <= first
    challenger = ExpectedUtilityOfBest().propose(context, 1, seed=0)
    assert (challenger - context.centers()[:1]).abs().max() > 5e-3
