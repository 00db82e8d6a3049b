import math

import pytest
import scipy.stats
import torch
from torch.testing import assert_close

from streamgp.errors import ValueRangeError
from streamgp.likelihoods import NegativeBinomial, Poisson
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import approximation, rounding, tolerance


class TestNegativeBinomial(LikelihoodLaws):
    covers = "NegativeBinomial"
    is_discrete = True
    support = (0.0, 5000.0)
    refused = ((-2.0, "NegativeBinomial targets must be whole numbers of at least 0"), (0.1, "Pass counts, not rates"))

    def likelihood(self):
        return NegativeBinomial(dispersion=3.0)

    def targets(self, rng, n, dtype):
        return torch.randint(0, 9, (n,), generator=rng).to(dtype)


def test_dispersion_must_be_positive():
    with pytest.raises(ValueRangeError, match="dispersion"):
        NegativeBinomial(-1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dispersion", [0.05, 2.0, 1e4])
@pytest.mark.parametrize("count", [0.0, 7.0, 1e5])
def test_log_density_equals_scipy(count, dispersion, dtype):
    f = torch.tensor([-0.1, 0.0, 0.1], dtype=dtype) + math.log(count + 0.5)
    expected = scipy.stats.nbinom.logpmf(count, dispersion, dispersion / (dispersion + f.double().exp()))
    value = NegativeBinomial(dispersion).log_density(f, torch.full_like(f, count))
    assert_close(
        value,
        torch.as_tensor(expected).to(dtype),
        rtol=tolerance(dtype)["rtol"],
        atol={torch.float32: 5e-3, torch.float64: 1e-7}[dtype],
    )


def test_large_dispersion_is_a_poisson():
    f = torch.linspace(-1.0, 2.0, 5, dtype=torch.float64)
    y = torch.arange(5, dtype=torch.float64)
    assert_close(NegativeBinomial(1e9).log_density(f, y), Poisson().log_density(f, y), **approximation(1e-6, "model"))


@pytest.mark.parametrize("dispersion", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("mean", [-1.0, 8.0])
def test_quantiles_without_variance_equal_scipy(mean, dispersion):
    m, p = torch.tensor([mean], dtype=torch.float64), [0.1, 0.5, 0.99]
    quantiles = NegativeBinomial(dispersion).predictive_quantiles(m, torch.zeros_like(m), p)[0]
    expected = scipy.stats.nbinom.ppf(p, dispersion, dispersion / (dispersion + math.exp(mean)))
    assert_close(quantiles, torch.as_tensor(expected), rtol=0.0, atol=0.0)


def test_the_weak_prior_of_the_dispersion_is_log_normal():
    r = torch.tensor(math.e**2, dtype=torch.float64)
    assert_close(float(NegativeBinomial(r).log_prior()), -0.5, **rounding(torch.float64))
    assert float(NegativeBinomial(1.0).log_prior()) == 0.0
    assert float(NegativeBinomial(r, is_learned=False).log_prior()) == 0.0
