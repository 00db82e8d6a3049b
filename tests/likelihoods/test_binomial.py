import math

import pytest
import scipy.integrate
import scipy.stats
import torch
from torch.testing import assert_close

from streamgp.errors import ShapeError, ValueRangeError
from streamgp.likelihoods import Bernoulli, Binomial
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import approximation, rounding


class TestBinomial(LikelihoodLaws):
    covers = "Binomial"
    is_discrete = True
    support = (0.0, 12.0)
    refused = (
        (13.0, "Binomial targets must be whole numbers from 0 to total_count"),
        (-1.0, "from 0 to total_count"),
        (0.5, "a proportion becomes one"),
    )

    def likelihood(self):
        return Binomial(total_count=12)

    def targets(self, rng, n, dtype):
        return torch.randint(0, 13, (n,), generator=rng).to(dtype)


@pytest.mark.parametrize("total_count", [-1, 2.5])
def test_total_count_must_be_whole(total_count):
    with pytest.raises(ValueRangeError, match="total_count"):
        Binomial(total_count)


def test_total_counts_belong_to_the_targets():
    likelihood = Binomial(torch.tensor([1, 2, 3]))
    with pytest.raises(ShapeError, match="total_count"):
        likelihood.check_targets(torch.zeros(4))


def test_one_trial_is_a_bernoulli():
    f = torch.linspace(-3.0, 3.0, 8, dtype=torch.float64)
    y = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(4)
    one, many = Bernoulli(), Binomial(1)
    assert_close(many.log_density(f, y), one.log_density(f, y))
    assert_close(many.predictive_variance(f, f**2), one.predictive_variance(f, f**2))
    assert_close(many.predictive_quantiles(f, f**2, [0.3, 0.5]), one.predictive_quantiles(f, f**2, [0.3, 0.5]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_trials_carry_no_information(dtype):
    f, zero = torch.linspace(-100.0, 100.0, 5, dtype=dtype), torch.zeros(5, dtype=dtype)
    likelihood = Binomial(0)
    assert torch.equal(likelihood.check_targets(zero), zero)
    for value in (
        likelihood.log_density(f, zero),
        *likelihood.derivatives(f, zero),
        likelihood.log_predictive_density(f, zero + 1.0, zero),
        likelihood.predictive_mean(f, zero + 1.0),
        likelihood.predictive_variance(f, zero + 1.0),
        likelihood.predictive_quantiles(f, zero + 1.0, [0.9])[..., 0],
        likelihood.sample(f),
    ):
        assert_close(value, zero)


def test_totals_per_observation_broadcast_with_batches():
    total = torch.tensor([[1.0, 5.0, 0.0], [7.0, 2.0, 9.0]], dtype=torch.float64)
    f, v = torch.tensor([-0.5, 0.2, 1.0], dtype=torch.float64), torch.full((3,), 0.5, dtype=torch.float64)
    y = torch.zeros(3, dtype=torch.float64)
    likelihood = Binomial(total)
    for name in ("expected_log_density", "log_predictive_density"):
        expected = torch.stack([getattr(Binomial(row), name)(f, v, y) for row in total])
        assert_close(getattr(likelihood, name)(f, v, y), expected)
    quantiles = likelihood.predictive_quantiles(f, v, [0.2, 0.8])
    assert_close(quantiles, torch.stack([Binomial(row).predictive_quantiles(f, v, [0.2, 0.8]) for row in total]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("total_count", [1000, 100_000])
def test_many_trials_keep_their_digits(total_count, dtype):
    y = torch.tensor([0.0, 1.0, 0.3 * total_count, total_count - 1.0, total_count], dtype=dtype)
    f = torch.logit((y.double() + 1.0) / (total_count + 2.0)).to(dtype)
    expected = torch.as_tensor(scipy.stats.binom.logpmf(y.double(), total_count, torch.sigmoid(f.double())))
    value = Binomial(total_count).log_density(f, y)
    # A latent value moves the log density by the standard deviation of the count; the reference, in double precision,
    # adds logarithms of factorials.
    limits = rounding(dtype, condition=total_count**0.5)
    limits["atol"] += rounding(torch.float64, scale=total_count * math.log(total_count))["atol"]
    assert_close(value, expected.to(dtype), **limits)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("y", [0.0, 3.0, 500.0, 1000.0])
def test_log_predictive_density_is_accurate_when_the_likelihood_is_narrow(y, dtype):
    mean, variance = torch.tensor([1.0], dtype=dtype), torch.tensor([4.0], dtype=dtype)
    likelihood = Binomial(1000)

    def integrand(f):
        value = likelihood.log_density(torch.tensor(f, dtype=torch.float64), torch.tensor(y, dtype=torch.float64))
        return value.exp().item() * scipy.stats.norm.pdf(f, 1.0, 2.0)

    peak = torch.logit(torch.tensor((y + 0.5) / 1001.0)).item()
    expected, _ = scipy.integrate.quad(integrand, -25.0, 25.0, points=[peak - 0.5, peak, peak + 0.5], limit=500)
    value = likelihood.log_predictive_density(mean, variance, torch.tensor([y], dtype=dtype)).exp().item()
    limits = approximation(1e-7 + rounding(dtype, condition=1000**0.5)["rtol"], "quadrature")
    assert_close(value / expected, 1.0, **limits)


@pytest.mark.parametrize("variance", [0.0, 1e-6, 4.0])
def test_quantiles_of_many_trials_follow_the_mixture(variance):
    mean = torch.tensor([-1.0, 0.5], dtype=torch.float64)
    v = torch.full_like(mean, variance)
    quantiles = Binomial(100_000).predictive_quantiles(mean, v, [0.1, 0.5, 0.9])
    p = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    if variance < 1.0:
        expected = torch.as_tensor(scipy.stats.binom.ppf(p, 100_000, torch.sigmoid(mean).unsqueeze(-1)))
        atol = 1e-9 if variance == 0.0 else 80.0
    else:
        # The counts themselves hardly vary beside the latent value, whose quantiles are known.
        expected = 100_000 * torch.sigmoid(mean.unsqueeze(-1) + 2.0 * torch.special.ndtri(p))
        atol = 20.0
    assert_close(quantiles, expected, rtol=0.0, atol=atol)
