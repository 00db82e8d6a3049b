import math

import pytest
import scipy.stats
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Censored, Gaussian
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import rounding, tolerance


class TestWithoutLimits(LikelihoodLaws):
    covers = "Censored"
    is_discrete = False
    support = (-20.0, 20.0)
    refused = ()

    def likelihood(self):
        return Censored(0.8)

    def targets(self, rng, n, dtype):
        return torch.randn(n, generator=rng, dtype=torch.float64).to(dtype)


class TestWithLimits(LikelihoodLaws):
    covers = "Censored"
    is_discrete = False
    support = (-20.0, 20.0)
    refused = ()

    def likelihood(self):
        return Censored(0.8, lower=-0.5, upper=0.9)

    def targets(self, rng, n, dtype):
        return torch.randn(n, generator=rng, dtype=torch.float64).to(dtype)

    @pytest.mark.parametrize("variance", [0.0, 0.5])
    def test_the_density_sums_to_one_and_has_the_predicted_moments(self, variance):
        """Values between the limits, and the probabilities beyond them."""
        likelihood = self.likelihood()
        mean = torch.tensor([-1.5, 0.0, 1.2], dtype=torch.float64)
        v = torch.full_like(mean, variance)
        y = torch.linspace(-0.5, 0.9, 20_001, dtype=torch.float64)[1:-1].unsqueeze(-1)
        inside = likelihood.log_predictive_density(mean, v, y).exp()
        outside = [likelihood.log_predictive_density(mean, v, torch.tensor(end)).exp() for end in (-3.0, 3.0)]
        ends = torch.stack([_normal(mean, v, -0.5), _normal(mean, v, 0.9)])
        mass = 1.4 / 20_000 * (inside.sum(0) + 0.5 * ends.sum(0))
        assert_close(mass + sum(outside), torch.ones(3, dtype=torch.float64), **tolerance(torch.float64))


class TestBetween(TestWithLimits):
    def likelihood(self):
        return Censored(0.8, lower=-0.5, upper=0.9, is_between=True)

    @pytest.mark.parametrize("variance", [0.0, 0.5])
    def test_the_density_sums_to_one_and_has_the_predicted_moments(self, variance):
        likelihood, mean = self.likelihood(), torch.tensor([-1.5, 0.0, 1.2], dtype=torch.float64)
        v = torch.full_like(mean, variance)
        mass = [likelihood.log_predictive_density(mean, v, torch.tensor(one)).exp() for one in (-3.0, 0.1, 3.0)]
        assert_close(sum(mass), torch.ones(3, dtype=torch.float64), **rounding(torch.float64))


def _normal(mean, variance, y):
    return torch.from_numpy(scipy.stats.norm.pdf(y, mean, (0.8 + variance) ** 0.5))


def test_each_row_has_its_own_limits_or_none():
    y = torch.tensor([0.5, 0.5, 2.0, 1.0], dtype=torch.float64)
    likelihood = Censored(
        1.0, lower=[0.5, -math.inf, 0.0, 0.0], upper=[math.inf, math.inf, 2.0, 3.0], is_between=[0, 0, 0, 1]
    )
    f = torch.zeros(4, dtype=torch.float64)
    normal = scipy.stats.norm
    expected = [normal.logcdf(0.5), normal.logpdf(0.5), normal.logsf(2.0), math.log(normal.cdf(3.0) - 0.5)]
    assert_close(likelihood.log_density(f, y), torch.tensor(expected, dtype=torch.float64), **rounding(torch.float64))
    part = likelihood.at_rows(torch.tensor([0, 2]))
    assert_close(part.log_density(f[:2], y[[0, 2]]), likelihood.log_density(f, y)[[0, 2]])


def test_values_below_detection_are_learned_as_such():
    """A third of the values is below the limit: a fit that takes the limit for a value is far from the function."""
    rng = torch.Generator().manual_seed(0)
    X = torch.rand(120, 1, generator=rng, dtype=torch.float64)
    truth = (6.0 * X[:, 0]).sin()
    y = (truth + 0.1 * torch.randn(120, generator=rng, dtype=torch.float64)).clamp_min(-0.3)
    censored = sg.fit(X, y, likelihood=Censored(0.05, lower=-0.3), num_inducing=15)
    taken = sg.fit(X, y, likelihood=Gaussian(0.05), num_inducing=15)
    error, naive = (float((fit.predict(X).mean - truth).square().mean().sqrt()) for fit in (censored, taken))
    assert error < 0.7 * naive


def test_limits_that_cross_are_refused():
    with pytest.raises(ValueRangeError, match="lower must be below upper for every observation, but is not for 1 of 2"):
        Censored(0.1, lower=[0.0, 1.0], upper=0.5)
