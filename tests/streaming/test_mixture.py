import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from streamgp.streaming.mixture import Mixture
from streamgp.streaming.outliers import Plausibility
from streamgp.streaming.students import student_log_density
from streamgp.testing.tolerances import judgement


def test_weights_are_products_of_densities_but_for_a_small_rate_of_switching():
    densities = torch.tensor([[0.0, -1.0, -0.5], [-0.3, 0.2, -0.1]], dtype=torch.float64)
    mixture = Mixture.even(2, 1).judged(densities)
    assert_close(mixture.weights, torch.softmax(densities.sum(-1), 0), **judgement(absolute=0.02))
    assert float(mixture.weights.sum()) == pytest.approx(1.0)


def test_an_expert_that_becomes_the_best_one_takes_over_within_some_rows():
    first = torch.tensor([[0.0], [-1.0]], dtype=torch.float64).expand(2, 500)
    mixture = Mixture.even(2, 1).judged(first)
    assert float(mixture.weights[0]) > 0.99
    assert float(mixture.judged(first.flip(0)[:, :10]).weights[1]) > 0.9


def test_scales_start_wide_and_end_at_the_mean_squared_error():
    start = Mixture.even(1, 1)
    assert start.degrees == 3.0
    squares = 4.0 * torch.randn(1, 1, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64).square()
    end = start.calibrated(squares)
    assert 2.0 < float(end.scale) < 7.0
    assert end.degrees > 20.0


def test_one_outlier_does_not_make_the_scale_its_own():
    usual = torch.ones(1, 1, 100, dtype=torch.float64)
    mixture = Mixture.even(1, 1).calibrated(usual)
    hit = mixture.calibrated(torch.full((1, 1, 1), 1e4, dtype=torch.float64))
    assert float(hit.scale) < 3.0 * float(mixture.scale)


def test_a_mixture_whose_scale_is_not_learned_is_gaussian():
    mixture = Mixture.even(1, 1, is_scaled=False)
    assert math.isinf(mixture.degrees)
    assert mixture.calibrated(torch.ones(1, 1, 5, dtype=torch.float64)) is mixture


def test_intervals_of_plain_noise_cover_what_they_promise_and_follow_noise_that_grows():
    squares = torch.randn(200, 1, 340, generator=torch.Generator().manual_seed(0), dtype=torch.float64).square()
    still = Mixture.even(200, 1).calibrated(squares[..., :300])
    coverage = 2.0 * stats.norm.cdf(stats.t(still.degrees).ppf(0.95) * still.scale.sqrt().numpy()) - 1.0
    assert ((coverage > 0.85) & (coverage < 0.95)).mean() > 0.98
    grown = still.calibrated(4.0 * squares[..., 300:])
    assert float(grown.scale.mean()) > 2.2


def test_a_scale_becomes_as_small_as_errors_are():
    squares = 1e-4 * torch.randn(1, 1, 600, generator=torch.Generator().manual_seed(0), dtype=torch.float64).square()
    calm = Mixture.even(1, 1).calibrated(squares)
    assert 3e-5 < float(calm.scale) < 3e-4
    assert float(calm.calibrated(torch.zeros(1, 1, 3000, dtype=torch.float64)).scale) > 0.0


def test_experts_whose_noise_is_too_wide_are_weighed_by_their_errors():
    generator = torch.Generator().manual_seed(0)
    # The first is narrower, and its errors are four times as large.
    sd, error_sd = torch.tensor([[1.0], [2.0]], dtype=torch.float64), torch.tensor([[0.08], [0.02]]).double()
    mixture = Mixture.even(2, 1)
    for _ in range(300):
        error = error_sd * torch.randn(2, 1, generator=generator, dtype=torch.float64)
        variance = (sd.square() * mixture.scale).numpy()
        densities = torch.from_numpy(student_log_density(error.numpy(), variance, mixture.degrees))
        mixture = mixture.judged(densities).calibrated((error / sd).square().unsqueeze(-1))
    assert float(mixture.weights[1]) > 0.9


def test_nobody_is_judged_by_outliers_and_scales_learn_little_from_them():
    densities = torch.tensor([[-50.0], [-1.0]], dtype=torch.float64)
    outlier = Plausibility(np.full((2, 1, 1), 1e-9), np.full(1, 1e-9))
    mixture = Mixture.even(2, 1).calibrated(torch.ones(2, 1, 50, dtype=torch.float64))
    far = torch.full((2, 1, 1), 1e6, dtype=torch.float64)
    judged = mixture.judged(densities, outlier).calibrated(far, outlier)
    assert_close(judged.weights, mixture.weights, **judgement(absolute=1e-6))
    assert_close(judged.scale, mixture.scale, **judgement(relative=0.25))
    # If noise grows, rows look like outliers at first.
    for _ in range(60):
        judged = judged.calibrated(torch.full((2, 1, 1), 100.0, dtype=torch.float64), outlier)
    assert float(judged.scale.min()) > 10.0


def test_in_the_long_run_the_weights_are_those_of_all_rows():
    first = torch.tensor([[0.0], [-0.5]], dtype=torch.float64).expand(2, 300)
    mixture = Mixture.even(2, 1).judged(first).judged(first.flip(0)[:, :50])
    assert float(mixture.weights[1]) > 0.9
    assert float(mixture.lasting_log_weights.softmax(-1)[0]) > 0.9
