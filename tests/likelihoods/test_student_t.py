import math
from itertools import pairwise

import pytest
import scipy.integrate
import scipy.stats
import torch
from torch.testing import assert_close

from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Gaussian, StudentT
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import approximation, rounding


class TestStudentT(LikelihoodLaws):
    covers = "StudentT"
    is_discrete = False
    support = (-600.0, 600.0)
    refused = ((float("-inf"), "StudentT targets must be finite numbers"),)

    def likelihood(self):
        return StudentT(degrees_of_freedom=9.0, scale=0.8)

    def targets(self, rng, n, dtype):
        return 3.0 * torch.randn(n, generator=rng, dtype=dtype)


def test_parameters_are_checked():
    with pytest.raises(ValueRangeError, match="degrees_of_freedom"):
        StudentT(2.0)
    with pytest.raises(ValueRangeError, match="positive"):
        StudentT(4.0, 0.0)


_THOROUGH = pytest.mark.thorough


@pytest.mark.parametrize("degrees_of_freedom", [2.1, pytest.param(4.0, marks=_THOROUGH), 30.0, 500.0])
@pytest.mark.parametrize("deviation", [0.03, pytest.param(1.0, marks=_THOROUGH), 30.0])
@pytest.mark.parametrize("target", [0.0, pytest.param(1.0, marks=_THOROUGH), pytest.param(15.0, marks=_THOROUGH), 50.0])
def test_log_predictive_density_is_accurate_for_narrow_noise_and_outliers(degrees_of_freedom, deviation, target):
    likelihood = StudentT(degrees_of_freedom, 1.0)

    height = scipy.stats.t.pdf(0.0, degrees_of_freedom) * scipy.stats.norm.pdf(0.0, 0.0, deviation)

    def integrand(f):
        tail = math.log1p((target - f) ** 2 / degrees_of_freedom)
        return height * math.exp(-0.5 * ((degrees_of_freedom + 1.0) * tail + (f / deviation) ** 2))

    # The density of a sum of independent terms is an integral with peaks at 0 and at the target.
    cuts = sorted(
        {x + s * w for x in (0.0, target) for s in (-1, 0, 1) for w in (8.0 * deviation, deviation, 1.0, 8.0)}
    )
    edges = [-math.inf, *cuts, math.inf]
    pieces = [scipy.integrate.quad(integrand, a, b, epsabs=0.0, epsrel=1e-11, limit=200)[0] for a, b in pairwise(edges)]
    mean = torch.zeros(1, dtype=torch.float64)
    value = likelihood.log_predictive_density(mean, mean + deviation**2, mean + target).item()
    assert_close(value, math.log(sum(pieces)), rtol=0.0, atol=approximation(1e-7, "quadrature")["atol"])


@pytest.mark.parametrize("deviation", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("offset", [0.0, 0.3, 3.0, 7.0, 9.9, 10.1, 15.0])
def test_expectations_are_accurate_for_any_width_of_the_noise(offset, deviation):
    likelihood = StudentT(4.0, 0.5)
    mean = torch.tensor([0.2], dtype=torch.float64)
    variance, y = torch.full_like(mean, deviation**2), mean + offset * deviation
    t = torch.linspace(-14.0, 14.0, 400_001, dtype=torch.float64).unsqueeze(-1)
    weights = torch.softmax(-0.5 * t**2, 0)
    f = mean + deviation * t
    expected = (likelihood.log_density(f, y), *likelihood.derivatives(f, y))
    values = (likelihood.expected_log_density(mean, variance, y), *likelihood.expected_derivatives(mean, variance, y))
    for value, curve in zip(values, expected, strict=True):
        assert_close(value, (weights * curve).sum(0), **approximation(1e-7, "quadrature", scale=1e-3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_outliers_at_fifty_and_at_a_million_sigma_stay_finite_and_are_discounted(dtype):
    f = torch.zeros(3, dtype=dtype)
    y = torch.tensor([50.0, 1e4, 1e6], dtype=dtype)
    likelihood = StudentT(4.0, 1.0)
    first, second = likelihood.derivatives(f, y)
    assert_close(first, 5.0 / (y + 4.0 / y), **rounding(dtype))
    assert bool((second > 0).all())
    v = torch.ones_like(f)
    for value in (likelihood.log_predictive_density(f, v, y), *likelihood.expected_derivatives(f, v, y)):
        assert bool(torch.isfinite(value).all())


def test_many_degrees_of_freedom_are_gaussian():
    mean, v = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64), torch.full((5,), 0.5, dtype=torch.float64)
    y = torch.zeros(5, dtype=torch.float64)
    heavy, light = StudentT(1e7, 0.5), Gaussian(0.25)
    assert_close(
        heavy.log_predictive_density(mean, v, y),
        light.log_predictive_density(mean, v, y),
        **approximation(1e-6, "model"),
    )
    p, limits = [0.01, 0.5, 0.9], approximation(1e-6, "model")
    assert_close(heavy.predictive_quantiles(mean, v, p), light.predictive_quantiles(mean, v, p), **limits)


def test_quantiles_without_variance_equal_scipy():
    p = [0.001, 0.3, 0.5, 0.99999]
    mean = torch.tensor([1.5], dtype=torch.float64)
    quantiles = StudentT(3.0, 0.7).predictive_quantiles(mean, torch.zeros_like(mean), p)[0]
    limits = approximation(1e-7, "iteration")
    assert_close(quantiles, torch.as_tensor(scipy.stats.t.ppf(p, 3.0, 1.5, 0.7)), **limits)


def test_training_cannot_push_the_degrees_of_freedom_to_two():
    values = {"degrees_of_freedom": torch.tensor(-1000.0), "scale": torch.tensor(0.0)}
    assert StudentT().with_learnable(values).degrees_of_freedom.item() > 2.0
