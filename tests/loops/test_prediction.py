import math

import pytest
import torch
from torch.testing import assert_close

from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Poisson
from streamgp.loops.prediction import check_level, predict_response
from streamgp.loops.units import OutcomeUnits
from streamgp.testing.tolerances import approximation, tolerance


@pytest.fixture
def latent(rng):
    return torch.randn(6, generator=rng, dtype=torch.float64), 0.1 + torch.rand(6, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("scale", [2.0, -2.0])
def test_real_responses_are_those_of_a_gaussian_in_the_users_units(latent, scale):
    m, v = latent
    found = predict_response(m, v, None, units=OutcomeUnits(5.0, scale), level=0.9, threshold=4.0)
    normal = torch.distributions.Normal(5.0 + scale * m, 2.0 * v.sqrt())
    limits = tolerance(torch.float64, scale=10.0)
    assert_close(found.mean, normal.mean, **limits)
    assert_close(found.std, normal.stddev, **limits)
    assert_close(normal.cdf(found.lower), torch.full_like(m, 0.05), **limits)
    assert_close(normal.cdf(found.upper), torch.full_like(m, 0.95), **limits)
    assert found.exceedance is not None
    assert_close(found.exceedance, 1.0 - normal.cdf(torch.tensor(4.0, dtype=torch.float64)), **limits)


def test_rates_are_log_normal(latent):
    m, v = latent
    found = predict_response(m, v, Poisson(3.0), level=0.8, threshold=2.0)
    mean = 3.0 * (m + 0.5 * v).exp()
    assert_close(found.mean, mean, **tolerance(torch.float64, scale=10.0))
    assert_close(found.std, mean * torch.expm1(v).sqrt(), **approximation(1e-7, "quadrature"))
    quantile = torch.special.ndtri(torch.tensor(0.9, dtype=torch.float64))
    assert_close(found.upper, 3.0 * (m + quantile * v.sqrt()).exp(), **tolerance(torch.float64, scale=10.0))
    above = 0.5 * torch.erfc((math.log(2.0) - m) / (2.0 * v).sqrt())  # the rate of a unit of exposure
    assert_close(found.exceedance, above, **tolerance(torch.float64))


@pytest.mark.parametrize("level", [0.0, 1.0, 95, True, "0.9"])
def test_levels_are_probabilities(level):
    with pytest.raises(ValueRangeError, match="level must be a probability between 0 and 1"):
        check_level(level)
