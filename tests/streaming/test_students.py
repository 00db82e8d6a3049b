import math

import numpy as np
import pytest
import torch
from scipy import stats

from streamgp.streaming.students import StudentMixture, student_log_density
from streamgp.testing.tolerances import approximation, rounding


def _law(degrees, mean, scale):
    return stats.norm(mean, scale) if math.isinf(degrees) else stats.t(degrees, mean, scale)


@pytest.mark.parametrize("degrees", [3.0, 12.5, math.inf])
def test_log_densities_are_those_of_scipy(degrees):
    error = np.array([-2.0, 0.1, 7.0])
    np.testing.assert_allclose(
        student_log_density(error, np.array(2.25), degrees),
        _law(degrees, 0.0, 1.5).logpdf(error),
        **rounding(torch.float64),
    )


@pytest.mark.parametrize("degrees", [3.0, 30.0, math.inf])
def test_probabilities_are_averages_of_those_of_scipy(degrees):
    means, scales = np.array([0.0, 4.0]), np.array([1.0, 0.1])
    mixture = StudentMixture(
        np.array([0.3, 0.7])[:, None, None], means[:, None, None], np.square(scales)[:, None, None], degrees
    )
    below = 0.3 * _law(degrees, 0.0, 1.0).cdf(3.9) + 0.7 * _law(degrees, 4.0, 0.1).cdf(3.9)
    np.testing.assert_allclose(
        mixture.cumulative(np.array([[3.9]])), [[below]], **rounding(torch.float64, condition=100)
    )


@pytest.mark.parametrize("degrees", [3.0, 30.0, math.inf])
def test_quantiles_have_the_probabilities_that_were_asked_for(degrees):
    draw = np.random.default_rng(0)
    weights = draw.dirichlet(np.ones(5))
    mixture = StudentMixture(
        weights[:, None, None], 5.0 * draw.normal(size=(5, 2, 3)), draw.uniform(0.01, 4.0, (5, 2, 3)), degrees
    )
    levels = np.array([1e-4, 0.05, 0.5, 0.9, 0.9999])
    found = mixture.quantiles(levels)
    for index, level in enumerate(levels):
        below = mixture.cumulative(found[..., index])
        np.testing.assert_allclose(below, np.full((2, 3), level), **approximation(1e-9, "iteration"))


@pytest.mark.parametrize("degrees", [3.0, math.inf])
def test_a_quantile_is_the_same_to_the_last_bit_whatever_else_is_asked_for(degrees):
    draw = np.random.default_rng(1)
    weights = draw.dirichlet(np.ones(20))[:, None, None]
    means, squared_scales = draw.normal(size=(20, 2, 3)), draw.uniform(0.1, 4.0, (20, 2, 3))
    together = StudentMixture(weights, means, squared_scales, degrees).quantiles(np.array([0.05, 0.5, 0.95]))
    alone = StudentMixture(weights, means[..., 1:2], squared_scales[..., 1:2], degrees).quantiles(np.array([0.5]))
    assert np.array_equal(alone, together[:, 1:2, 1:2])


def test_targets_may_have_weights_of_their_own():
    means, one = np.array([[[0.0, 0.0]], [[5.0, 5.0]]]), np.ones((2, 1, 2))
    mixture = StudentMixture(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), means, one, math.inf)
    np.testing.assert_allclose(
        mixture.quantiles(np.array([0.5]))[..., 0], [[0.0, 5.0]], **approximation(1e-9, "iteration")
    )
    np.testing.assert_allclose(mixture.cumulative(np.array([[0.0, 5.0]])), [[0.5, 0.5]], **rounding(torch.float64))
