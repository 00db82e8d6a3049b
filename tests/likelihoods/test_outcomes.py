"""Moments, quantiles and samples of a likelihood that defines nothing but its log density and response."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods import AbstractLikelihood, Gaussian, Poisson
from streamgp.testing.tolerances import sampling, tolerance, within

MEAN = torch.tensor([-1.0, 0.3, 2.0], dtype=torch.float64)
VARIANCE = torch.tensor([0.2, 1.0, 0.0], dtype=torch.float64)
PROBABILITIES = [0.01, 0.3, 0.5, 0.99]


@dataclass(frozen=True, eq=False)
class PlainGaussian(AbstractLikelihood):
    outcome_kind: ClassVar[str] = "real"
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    is_log_concave: ClassVar[bool] = True
    noise: float = 0.3

    def log_density(self, f, y):
        return -0.5 * (y.to(f) - f).square() / self.noise - 0.5 * math.log(2 * math.pi * self.noise)

    def response(self, f):
        return f


@dataclass(frozen=True, eq=False)
class PlainPoisson(AbstractLikelihood):
    outcome_kind: ClassVar[str] = "count"
    support: ClassVar[tuple[float, float]] = (0.0, math.inf)
    is_log_concave: ClassVar[bool] = True

    def log_density(self, f, y):
        return y.to(f) * f - f.exp() - torch.lgamma(y.to(f) + 1.0)

    def response(self, f):
        return f.exp()


@dataclass(frozen=True, eq=False)
class Exponential(AbstractLikelihood):
    outcome_kind: ClassVar[str] = "real"
    support: ClassVar[tuple[float, float]] = (0.0, math.inf)
    is_log_concave: ClassVar[bool] = True

    def log_density(self, f, y):
        return -f - y.to(f) * torch.exp(-f)

    def response(self, f):
        return f.exp()


@pytest.mark.slow
@pytest.mark.parametrize(("plain", "closed"), [(PlainGaussian(), Gaussian(0.3)), (PlainPoisson(), Poisson())])
def test_numerical_defaults_equal_closed_forms(plain, closed):
    y = closed.sample(MEAN, generator=torch.Generator().manual_seed(0))
    for method in ("expected_log_density", "log_predictive_density"):
        assert_close(
            getattr(plain, method)(MEAN, VARIANCE, y),
            getattr(closed, method)(MEAN, VARIANCE, y),
            **tolerance(torch.float64),
        )
    for method in ("derivatives", "expected_derivatives"):
        arguments = (MEAN, y) if method == "derivatives" else (MEAN, VARIANCE, y)
        for ours, theirs in zip(getattr(plain, method)(*arguments), getattr(closed, method)(*arguments), strict=True):
            assert_close(ours, theirs, **tolerance(torch.float64))
    for method in ("predictive_mean", "predictive_variance", "expected_curvature", "response_variance"):
        assert_close(
            getattr(plain, method)(MEAN, VARIANCE),
            getattr(closed, method)(MEAN, VARIANCE),
            **tolerance(torch.float64),
        )
    asked = MEAN[:2], VARIANCE[:2], PROBABILITIES[1:3]
    assert_close(plain.predictive_quantiles(*asked), closed.predictive_quantiles(*asked), **tolerance(torch.float64))


def test_quantiles_on_half_a_line_equal_the_closed_form():
    quantiles = Exponential().predictive_quantiles(MEAN, torch.zeros_like(MEAN), PROBABILITIES)
    exact = MEAN.exp().unsqueeze(-1) * -torch.log1p(-torch.tensor(PROBABILITIES, dtype=torch.float64))
    assert_close(quantiles, exact, **tolerance(torch.float64))
    assert_close(Exponential().conditional_variance(MEAN), (2.0 * MEAN).exp(), **tolerance(torch.float64))


def test_samples_are_spread_as_the_distribution():
    f = torch.zeros(2000, dtype=torch.float64)
    y = Exponential().sample(f, generator=torch.Generator().manual_seed(0))
    assert float(y.mean()) == pytest.approx(1.0, **within(sampling(1.0 / math.sqrt(2000))))
    assert float((y < math.log(2.0)).double().mean()) == pytest.approx(0.5, **within(sampling(0.5 / math.sqrt(2000))))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_quantiles_hold_at_any_scale(scale):
    noise = (0.01 * scale) ** 2
    quantiles = PlainGaussian(noise).predictive_quantiles(scale * MEAN, torch.zeros_like(MEAN), [0.2, 0.5])
    scores = torch.special.ndtri(torch.tensor([0.2, 0.5], dtype=torch.float64))
    assert_close(quantiles / scale, MEAN.unsqueeze(-1) + 0.01 * scores, **tolerance(torch.float64))


def test_targets_outside_the_support_are_refused():
    for likelihood, y, expected in (
        (PlainGaussian(), math.nan, "PlainGaussian targets must be finite numbers"),
        (PlainPoisson(), 0.5, "PlainPoisson targets must be whole numbers of at least 0"),
        (Exponential(), 0.0, "Exponential targets must be numbers above 0"),
    ):
        with pytest.raises(ValueError, match=expected):
            likelihood.check_targets(torch.tensor([y]))
