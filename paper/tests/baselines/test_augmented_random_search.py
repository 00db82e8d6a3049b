"""Steps of augmented random search by hand, and statistics that add up."""

import numpy as np
import pytest
import torch

from paper.baselines.augmented_random_search import (
    RandomSearchSettings,
    _merged,
    augmented_random_search,
    search_step,
)
from paper.problems.mujoco import ObservationScale
from streamgp.errors import UnsupportedError
from streamgp.testing.tolerances import rounding


def test_a_step_follows_the_best_directions():
    directions = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 1.0]]])
    rewards = np.array([[3.0, 1.0], [0.0, 0.5], [2.0, 4.0]])
    settings = RandomSearchSettings(num_directions=3, num_used=2, step_size=0.5)
    # The third and the first are the best; their rewards 2, 4, 3, 1 have a standard deviation of sqrt(1.25).
    expected = 0.5 / (2.0 * np.sqrt(1.25)) * (-2.0 * directions[2] + 2.0 * directions[0])
    np.testing.assert_allclose(
        search_step(np.zeros((1, 2)), directions, rewards, settings), expected, **rounding(torch.float64)
    )


def test_equal_rewards_move_nothing():
    policy = np.ones((1, 2))
    found = search_step(policy, np.ones((2, 1, 2)), np.ones((2, 2)), RandomSearchSettings(num_directions=2, num_used=2))
    np.testing.assert_array_equal(found, policy)


def test_statistics_of_episodes_that_start_alike_add_up():
    random = np.random.default_rng(0)
    old, one, two = (random.normal(size=(n, 3)) for n in (20, 7, 11))

    def scale_of(*parts):
        scale = ObservationScale.empty(3)
        for row in np.concatenate(parts):
            scale = scale.add(row)
        return scale

    before = scale_of(old)
    merged = _merged(_merged(before, before, scale_of(old, one)), before, scale_of(old, two))
    together = scale_of(old, one, two)
    assert merged.count == together.count
    np.testing.assert_allclose(merged.mean, together.mean, **rounding(torch.float64, condition=100.0))
    np.testing.assert_allclose(
        merged.squares, together.squares, **rounding(torch.float64, condition=100.0, scale=100.0)
    )


def test_a_search_repeats_by_its_seed():
    settings = RandomSearchSettings(num_directions=2, num_used=1, shift=1.0)
    try:
        first, second = (next(augmented_random_search("Hopper-v5", (3, 11), settings, seed=3)) for _ in range(2))
    except UnsupportedError:
        pytest.skip("Gymnasium with MuJoCo is not installed")
    np.testing.assert_array_equal(first.policy, second.policy)
    assert first.num_episodes == 4
    assert first.scale.count > 4
