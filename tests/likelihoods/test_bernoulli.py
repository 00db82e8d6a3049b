import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.stats
import torch
from torch.testing import assert_close

from streamgp.errors import OptionError
from streamgp.likelihoods import Bernoulli
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import approximation, tolerance, within


class _BernoulliLaws(LikelihoodLaws):
    covers = "Bernoulli"
    is_discrete = True
    support = (0.0, 1.0)
    refused = ((-1.0, r"Bernoulli targets must be 0 or 1.*\(y \+ 1\) / 2"), (0.5, "must be 0 or 1"))

    def targets(self, rng, n, dtype):
        return torch.randint(0, 2, (n,), generator=rng).to(dtype)


class TestBernoulliLogit(_BernoulliLaws):
    def likelihood(self):
        return Bernoulli()


class TestBernoulliProbit(_BernoulliLaws):
    def likelihood(self):
        return Bernoulli(link="probit")


def test_link_is_checked():
    with pytest.raises(OptionError, match="cloglog"):
        Bernoulli("cloglog")


@pytest.mark.parametrize(
    "form",
    [list, np.array, pd.Series, torch.tensor, lambda truths: pd.Series(truths, dtype="boolean")],
    ids=["list", "array", "series", "tensor", "nullable series"],
)
def test_truth_values_are_classes_in_whatever_form_they_come(form):
    targets = Bernoulli().check_targets(form([True, False, True]))
    assert_close(targets, torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64))


@pytest.mark.parametrize("variance", [4.0, 25.0, 100.0])
def test_logit_probability_is_accurate_for_wide_latent_values(variance):
    mean = torch.tensor([-30.0, -1.0, 3.0], dtype=torch.float64)
    value = Bernoulli().log_predictive_density(mean, torch.full_like(mean, variance), torch.ones_like(mean)).exp()
    for m, p in zip(mean.tolist(), value.tolist(), strict=True):
        expected, _ = scipy.integrate.quad(
            lambda f, m=m: (
                torch.sigmoid(torch.tensor(f, dtype=torch.float64)).item() * scipy.stats.norm.pdf(f, m, variance**0.5)
            ),
            m - 15.0 * variance**0.5,
            m + 15.0 * variance**0.5,
            points=[0.0, m],
            epsabs=0.0,
            epsrel=1e-11,
            limit=500,
        )
        assert p == pytest.approx(
            expected, **within(approximation(1e-8 if variance < 100.0 else 1e-4, "quadrature", scale=0.0))
        )


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_certain_classes_have_log_density_zero_and_no_slope(link, dtype):
    f = torch.tensor([100.0], dtype=dtype)
    likelihood = Bernoulli(link)
    assert_close(likelihood.log_density(f, torch.ones_like(f)), torch.zeros_like(f))
    for derivative in likelihood.derivatives(f, torch.ones_like(f)):
        assert_close(derivative, torch.zeros_like(f))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probit_curvature_far_in_the_wrong_tail_tends_to_minus_one(dtype):
    f = torch.tensor([-20.0, -60.0], dtype=dtype)
    _, second = Bernoulli("probit").derivatives(f, torch.ones_like(f))
    # The asymptotic series of the Mills ratio: -(1 - 1 / f^2 + 6 / f^4 - ...).
    assert_close(second, -(1.0 - f**-2 + 6.0 * f**-4 - 50.0 * f**-6), **(tolerance(dtype) | {"atol": 1e-6}))
