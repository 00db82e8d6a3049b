import math

import pytest
import scipy.integrate
import scipy.stats
import torch
from torch.testing import assert_close

from streamgp.errors import ShapeError, ValueRangeError
from streamgp.likelihoods import Poisson
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import approximation, tolerance, within


class TestPoisson(LikelihoodLaws):
    covers = "Poisson"
    is_discrete = True
    support = (0.0, 2000.0)
    refused = ((-1.0, "Poisson targets must be whole numbers of at least 0"), (1.5, "Pass counts, not rates"))

    def likelihood(self):
        return Poisson(exposure=2.0)

    def targets(self, rng, n, dtype):
        return torch.randint(0, 9, (n,), generator=rng).to(dtype)


def test_exposure_must_be_positive_and_belong_to_the_targets():
    with pytest.raises(ValueRangeError, match="exposure"):
        Poisson(torch.tensor([1.0, 0.0]))
    with pytest.raises(ShapeError, match="exposure"):
        Poisson(torch.ones(3)).check_targets(torch.zeros(4))


def test_exposure_adds_its_logarithm_to_the_latent_value():
    exposure = torch.tensor([0.1, 1.0, 30.0], dtype=torch.float64)
    f, y = torch.zeros(3, dtype=torch.float64), torch.tensor([0.0, 2.0, 25.0], dtype=torch.float64)
    assert_close(Poisson(exposure).log_density(f, y), Poisson().log_density(f + exposure.log(), y))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [0.0, 1.0, 99.0, 100.0, 1e5, 1e7])
def test_log_density_keeps_its_digits_for_large_counts(count, dtype):
    f = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64) / math.sqrt(count + 1.0) + math.log(count + 0.5)
    f = f.to(dtype)
    y = torch.full_like(f, count)
    expected = torch.as_tensor(scipy.stats.poisson.logpmf(y.double(), f.double().exp()))
    # In single precision f itself is only known to 1e-6, which 1e7 counts resolve to 3e-4.
    atol = {torch.float32: 1e-2, torch.float64: 1e-6}[dtype]
    assert_close(Poisson().log_density(f, y), expected.to(dtype), rtol=tolerance(dtype)["rtol"], atol=atol)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("count", "mean"), [(0.0, 3.0), (0.0, 12.0), (3.0, 0.0), (1000.0, 0.0), (1e5, 8.0), (1e5, 0.0)]
)
def test_log_predictive_density_is_accurate_when_the_likelihood_is_narrow(count, mean, dtype):
    likelihood = Poisson()
    y = torch.tensor(count, dtype=torch.float64)

    def log_integrand(f):
        return likelihood.log_density(torch.tensor(f, dtype=torch.float64), y).item() - (f - mean) ** 2 / 8.0

    peak = scipy.optimize.minimize_scalar(lambda f: -log_integrand(f), bounds=(-40.0, 40.0), method="bounded").x
    width = 12.0 / math.sqrt(math.exp(peak) + 0.25)
    height = log_integrand(peak)
    total, _ = scipy.integrate.quad(
        lambda f: math.exp(log_integrand(f) - height),
        peak - 3 * width,
        peak + width,
        points=[peak],
        limit=500,
        epsabs=0.0,
    )
    expected = math.log(total) + height - 0.5 * math.log(8.0 * math.pi)
    m = torch.tensor([mean], dtype=dtype)
    value = likelihood.log_predictive_density(m, torch.full_like(m, 4.0), y.to(dtype).reshape(1)).item()
    assert value == pytest.approx(
        expected, **within(approximation(1e-7 if dtype == torch.float64 else 5e-3, "quadrature") | {"rtol": 0.0})
    )


def test_counts_of_a_hundred_thousand_in_single_precision_are_finite_from_any_belief():
    mean = torch.linspace(-100.0, 100.0, 41)
    y = torch.full_like(mean, 1e5)
    for variance in (0.0, 1e-4, 1.0, 100.0):
        v = torch.full_like(mean, variance)
        for value in (
            Poisson().log_predictive_density(mean, v, y),
            Poisson().expected_log_density(mean, v, y),
            *Poisson().expected_derivatives(mean, v, y),
            Poisson().predictive_variance(mean, v),
            Poisson().sample(mean),
        ):
            assert bool(torch.isfinite(value).all())


def test_the_density_of_a_count_is_as_exact_by_stirlings_series_as_before_it():
    y = torch.tensor([1.0, 40.0, 99.0, 100.0, 101.0, 150.0, 1e4], dtype=torch.float64)
    expected = scipy.stats.poisson.logpmf(y.numpy(), y.numpy())
    # The next term of the series is 1 / 1260 y^5.
    assert_close(
        Poisson().log_density(y.log(), y), torch.as_tensor(expected), **approximation(1e-13, "printed", scale=500.0)
    )


@pytest.mark.parametrize("variance", [0.0, 0.01, 4.0])
@pytest.mark.parametrize("mean", [-3.0, 0.0, 3.0, 12.0])
def test_quantiles_match_the_mixture_of_distribution_functions(mean, variance):
    p = [0.025, 0.5, 0.975]
    m = torch.tensor([mean], dtype=torch.float64)
    quantiles = Poisson().predictive_quantiles(m, torch.full_like(m, variance), p)[0].tolist()
    t = torch.linspace(-9.0, 9.0, 40_001, dtype=torch.float64)
    weights = torch.exp(-0.5 * t**2) / torch.exp(-0.5 * t**2).sum()
    rate = torch.exp(mean + math.sqrt(variance) * t)
    for probability, k in zip(p, quantiles, strict=True):
        at, below = (
            (weights * torch.as_tensor(scipy.stats.poisson.cdf(count, rate))).sum().item() for count in (k, k - 1.0)
        )
        assert at >= probability - 1e-6
        assert below <= probability + 1e-6
