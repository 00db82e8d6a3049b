import numpy as np
import pytest
import torch
from scipy import stats

from streamgp.estimators.warps import InputWarp, TargetWarp, choose_warps
from streamgp.testing.tolerances import judgement, within

RNG = np.random.default_rng(0)
POWERS = [0.0, 0.3, 1.4, 2.0]


def test_warped_columns_are_normal_scores_and_rise_without_end():
    X = np.stack([RNG.lognormal(0.0, 2.0, 500), RNG.integers(0, 3, 500).astype(float)], axis=1)
    warp = InputWarp.of(X)
    assert warp.columns == (0,)  # of three values nothing can be said
    warped = warp(X)
    assert stats.kstest(warped[:, 0], "norm").statistic < 0.05
    np.testing.assert_array_equal(warped[:, 1], X[:, 1])
    line = np.stack([np.linspace(-50.0, 500.0, 2001), np.zeros(2001)], axis=1)
    assert (np.diff(warp(line)[:, 0]) > 0).all()
    beyond = warp(np.array([[1e4, 0.0], [1e4 + X[:, 0].std(), 0.0]]))[:, 0]
    assert beyond[1] - beyond[0] == pytest.approx(1.0)


def test_rows_that_share_a_value_share_the_mean_of_their_scores():
    x = np.where(RNG.random(400) < 0.4, 0.0, RNG.lognormal(size=400))
    warp = InputWarp.of(x[:, None])
    at_zero = float(warp(np.zeros((1, 1)))[0, 0])
    # The mean score of the lowest two fifths: -phi(Phi^-1(.4)) / .4.
    assert at_zero == pytest.approx(-stats.norm.pdf(stats.norm.ppf(0.4)) / 0.4, **within(judgement(absolute=0.15)))


def test_few_rows_and_constant_columns_are_not_warped():
    assert not InputWarp.of(RNG.normal(size=(20, 2))).columns
    assert not InputWarp.of(np.ones((100, 1))).columns
    assert TargetWarp.of(RNG.lognormal(size=20)).is_identity


@pytest.mark.parametrize("power", POWERS)
def test_targets_come_back_and_slopes_are_derivatives(power):
    warp = TargetWarp(2.0, 3.0, power)
    y = np.linspace(-40.0, 60.0, 101)
    np.testing.assert_allclose(warp.back(warp(y)), y, **judgement(relative=1e-9, absolute=1e-9))
    step = 1e-5
    slope = (warp(y + step) - warp(y - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(warp.log_slope(y)), slope, **judgement(relative=1e-6))


@pytest.mark.parametrize("power", POWERS)
def test_moments_are_those_of_bent_normal_values(power):
    warp = TargetWarp(1.0, 2.0, power)
    mean, covariance = np.array([0.3, -0.5]), np.array([[0.4, 0.2], [0.2, 0.3]])
    draws = warp.back(np.random.default_rng(0).multivariate_normal(mean, covariance, 400_000))
    expected, variance = warp.moments(mean, covariance.diagonal())
    np.testing.assert_allclose(expected, draws.mean(0), **judgement(absolute=0.02))
    found = warp.covariance(mean, covariance)
    np.testing.assert_allclose(found, np.cov(draws.T), **judgement(relative=0.03))
    np.testing.assert_allclose(found.diagonal(), variance, **judgement(relative=1e-9))


def test_yeo_and_johnson_is_that_of_scipy():
    y = RNG.lognormal(size=200)
    warp = TargetWarp.of(y)
    t = (y - warp.center) / warp.scale
    np.testing.assert_allclose(warp(y), stats.yeojohnson(t, warp.power), **judgement(relative=1e-9, absolute=1e-12))
    assert 0.0 <= warp.power < 0.3


def test_units_are_bent_where_that_makes_rows_likelier():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(300, 2))
    f = np.sin(2 * scores[:, 0]) + scores[:, 1]

    def choose(X, y):
        generator = torch.Generator().manual_seed(0)
        return choose_warps(X, y, is_input_open=True, is_target_open=True, generator=generator)

    inputs, targets = choose(np.exp(2 * scores), np.exp(f + 0.1 * rng.normal(size=300)))
    assert inputs.columns == (0, 1)
    assert targets.power < 0.5
    inputs, targets = choose(scores, f + 0.1 * rng.normal(size=300))
    assert targets.is_identity
