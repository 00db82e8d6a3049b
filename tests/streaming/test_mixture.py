import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import softmax
from torch.testing import assert_close

from streamgp.streaming.mixture import Mixture
from streamgp.streaming.outliers import Plausibility
from streamgp.streaming.students import student_log_density
from streamgp.testing.tolerances import judgement


def _squares(num_experts, num_rows):
    draw = torch.Generator().manual_seed(0)
    return torch.randn(num_experts, 1, num_rows, generator=draw, dtype=torch.float64).square().numpy()


def test_weights_are_products_of_densities_but_for_a_small_rate_of_switching():
    densities = np.array([[0.0, -1.0, -0.5], [-0.3, 0.2, -0.1]])
    mixture = Mixture.even(2, 1).judged(densities)
    assert_close(mixture.weights, softmax(densities.sum(-1)), **judgement(absolute=0.02))
    assert float(mixture.weights.sum()) == pytest.approx(1.0)


def test_an_expert_that_becomes_the_best_one_takes_over_within_some_rows():
    first = np.tile([[0.0], [-1.0]], 500)
    mixture = Mixture.even(2, 1).judged(first)
    assert float(mixture.weights[0]) > 0.99
    assert float(mixture.judged(first[::-1][:, :10]).weights[1]) > 0.9


def test_scales_start_wide_and_end_at_the_mean_squared_error():
    start = Mixture.even(1, 1)
    assert start.degrees == 3.0
    squares = 4.0 * _squares(1, 2000)
    end = start.calibrated(squares)
    assert 2.0 < end.scale.item() < 7.0
    assert end.degrees > 20.0


def test_one_outlier_does_not_make_the_scale_its_own():
    usual = np.ones((1, 1, 100))
    mixture = Mixture.even(1, 1).calibrated(usual)
    hit = mixture.calibrated(np.full((1, 1, 1), 1e4))
    assert hit.scale.item() < 3.0 * mixture.scale.item()


def test_a_mixture_whose_scale_is_not_learned_is_gaussian():
    mixture = Mixture.even(1, 1, is_scaled=False)
    assert math.isinf(mixture.degrees)
    assert mixture.calibrated(np.ones((1, 1, 5))) is mixture


def test_intervals_of_plain_noise_cover_what_they_promise_and_follow_noise_that_grows():
    squares = _squares(200, 340)
    still = Mixture.even(200, 1).calibrated(squares[..., :300])
    coverage = 2.0 * stats.norm.cdf(stats.t(still.degrees).ppf(0.95) * np.sqrt(still.scale)) - 1.0
    assert ((coverage > 0.85) & (coverage < 0.95)).mean() > 0.98
    grown = still.calibrated(4.0 * squares[..., 300:])
    assert float(grown.scale.mean()) > 2.2


def test_a_scale_becomes_as_small_as_errors_are():
    squares = 1e-4 * _squares(1, 600)
    calm = Mixture.even(1, 1).calibrated(squares)
    assert 3e-5 < calm.scale.item() < 3e-4
    assert calm.calibrated(np.zeros((1, 1, 3000))).scale.item() > 0.0


def test_experts_whose_noise_is_too_wide_are_weighed_by_their_errors():
    draw = np.random.default_rng(0)
    # The first is narrower, and its errors are four times as large.
    sd, error_sd = np.array([[1.0], [2.0]]), np.array([[0.08], [0.02]])
    mixture = Mixture.even(2, 1)
    for _ in range(300):
        error = error_sd * draw.normal(size=(2, 1))
        densities = student_log_density(error, np.square(sd) * mixture.scale, mixture.degrees)
        mixture = mixture.judged(densities).calibrated(np.square(error / sd)[..., None])
    assert float(mixture.weights[1]) > 0.9


def test_nobody_is_judged_by_outliers_and_scales_learn_little_from_them():
    densities = np.array([[-50.0], [-1.0]])
    outlier = Plausibility(np.full((2, 1, 1), 1e-9), np.full(1, 1e-9))
    mixture = Mixture.even(2, 1).calibrated(np.ones((2, 1, 50)))
    far = np.full((2, 1, 1), 1e6)
    judged = mixture.judged(densities, outlier).calibrated(far, outlier)
    assert_close(judged.weights, mixture.weights, **judgement(absolute=1e-6))
    assert_close(judged.scale, mixture.scale, **judgement(relative=0.25))
    # If noise grows, rows look like outliers at first.
    for _ in range(60):
        judged = judged.calibrated(np.full((2, 1, 1), 100.0), outlier)
    assert float(judged.scale.min()) > 10.0


def test_in_the_long_run_the_weights_are_those_of_all_rows():
    first = np.tile([[0.0], [-0.5]], 300)
    mixture = Mixture.even(2, 1).judged(first).judged(first[::-1][:, :50])
    assert float(mixture.weights[1]) > 0.9
    assert softmax(mixture.lasting_log_weights)[0] > 0.9
