import math

import numpy as np
import torch

from streamgp.streaming.aging import Aging, Scales
from streamgp.streaming.experts import Expert, Experts
from streamgp.testing.tolerances import rounding

EXPERTS = Experts((Expert(), Expert(10.0, slope=2.0, amplitude=9.0), Expert(20.0), Expert(level_gain=0.5)))


def test_half_is_left_after_a_half_life_and_what_is_lost_comes_back_as_the_prior():
    aging = Aging.over(10, EXPERTS, 3, level_noise=0.4)
    np.testing.assert_allclose(aging.root[1, 0, :2], math.sqrt(0.5), **rounding(torch.float64))
    np.testing.assert_allclose(aging.products[1, 0, 0, 1], 0.5, **rounding(torch.float64))
    np.testing.assert_allclose(aging.steps[1, 0, :2], 0.5, **rounding(torch.float64))
    assert (aging.root[0] == 1.0).all()
    assert (aging.steps[0] == 0.0).all()


def test_levels_walk_and_are_never_forgotten():
    one, ten = (Aging.over(num_rows, EXPERTS, 3, level_noise=0.4) for num_rows in (1, 10))
    assert (ten.root[..., -1] == 1.0).all()
    np.testing.assert_allclose(one.steps[3, 0, -1], 0.4 * 0.5, **rounding(torch.float64))
    np.testing.assert_allclose(ten.steps[..., -1], 10.0 * one.steps[..., -1], **rounding(torch.float64))


def test_experts_that_forget_are_found_as_runs():
    assert Aging.over(1, EXPERTS, 3, level_noise=0.4).forgetting == ((1, 3),)
    assert Aging.over(1, Experts((Expert(),)), 3, level_noise=0.4).forgetting == ()
    assert Aging.over(1, Experts((Expert(5.0), Expert(), Expert(5.0))), 3, level_noise=0.4).forgetting == (
        (0, 1),
        (2, 3),
    )


def test_loadings_are_those_of_inducing_values_inputs_and_the_level():
    scales = Scales.of(EXPERTS, 3, 2, level_noise=0.4)
    np.testing.assert_array_equal(scales.loadings[1, 0, :, 0], [3.0, 3.0, 3.0, 2.0, 2.0, 0.0])
    np.testing.assert_array_equal(scales.loadings[3, 0, :, 0], [1.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(scales.amplitudes[:, 0, 0], [1.0, 9.0, 1.0, 1.0])


def test_what_happens_in_blocks_of_one_size_is_found_once():
    scales = Scales.of(EXPERTS, 4, 2, level_noise=0.4)
    first, again = (scales.over(16) for _ in range(2))
    assert again is first
    expected = Aging.over(16, EXPERTS, 7, level_noise=0.4)
    assert np.array_equal(first.products, expected.products)
    assert np.array_equal(first.steps, expected.steps)
    assert scales.over(1) is scales.aging
    assert not np.array_equal(scales.over(8).products, expected.products)
