"""The defaults, by automatic differentiation and quadrature, against likelihoods with closed forms."""

import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods import Exponential, Gaussian, Poisson
from streamgp.likelihoods.expectations import Expectations
from streamgp.testing.tolerances import approximation, tolerance

CLOSED = {"poisson": Poisson(2.0), "gaussian": Gaussian(0.3), "exponential": Exponential()}


@pytest.fixture(params=CLOSED)
def likelihood(request):
    return CLOSED[request.param]


def problem(rng):
    mean = torch.randn(7, generator=rng, dtype=torch.float64)
    variance = torch.rand(7, generator=rng, dtype=torch.float64)
    return mean, variance, torch.randint(1, 5, (7,), generator=rng).double()


def test_derivatives_by_automatic_differentiation_are_those_of_the_closed_form(likelihood, rng):
    f, _, y = problem(rng)
    for found, expected in zip(Expectations.derivatives(likelihood, f, y), likelihood.derivatives(f, y), strict=True):
        assert_close(found, expected, **tolerance(torch.float64, scale=10.0))


def test_expectations_by_quadrature_are_those_of_the_closed_form(likelihood, rng):
    m, v, y = problem(rng)
    limits = approximation(1e-9, "quadrature")
    found = Expectations.expected_log_density(likelihood, m, v, y)
    assert_close(found, likelihood.expected_log_density(m, v, y), **limits)
    pairs = zip(
        Expectations.expected_derivatives(likelihood, m, v, y), likelihood.expected_derivatives(m, v, y), strict=True
    )
    for each, expected in pairs:
        assert_close(each, expected.expand_as(each), **limits)


def test_numbers_of_one_observation_are_those_of_tensors(likelihood, rng):
    m, v, y = problem(rng)
    first, second = likelihood.expected_derivatives(m, v, y)
    one = Expectations.expected_derivatives_of_one(likelihood, float(m[0]), float(v[0]), float(y[0]))
    assert one == pytest.approx(
        (float(first[0]), float(second.expand_as(first)[0])), rel=tolerance(torch.float64)["rtol"]
    )


def test_second_derivatives_of_a_linear_density_are_zero():
    class Linear(Expectations):
        def log_density(self, f, y):
            return f * y

    first, second = Linear().derivatives(torch.ones(3, dtype=torch.float64), torch.full((3,), 2.0, dtype=torch.float64))
    assert torch.equal(first, torch.full_like(first, 2.0))
    assert torch.equal(second, torch.zeros_like(second))
