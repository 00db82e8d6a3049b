"""Linear policies of robots: scales of observations, options, and episodes where MuJoCo is installed."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from paper.problems import Hopper, Swimmer
from paper.problems.mujoco import ObservationScale, play_episode
from streamgp.errors import OptionError, UnsupportedError, ValueRangeError
from streamgp.testing.tolerances import rounding, within


@pytest.fixture
def has_mujoco():
    try:
        play_episode("Hopper-v5", np.zeros((3, 11)), seed=0, scale=ObservationScale.empty(11), num_steps=1)
    except UnsupportedError:
        pytest.skip("Gymnasium with MuJoCo is not installed")


def test_the_scale_has_the_moments_of_what_was_observed():
    rows = np.random.default_rng(0).normal(3.0, 2.0, (50, 4))
    rows[:, 3] = 1.5
    scale = ObservationScale.empty(4)
    assert scale.deviation.tolist() == [1.0] * 4
    for row in rows:
        scale = scale.add(row)
    np.testing.assert_allclose(scale.mean, rows.mean(0), **rounding(torch.float64, condition=64.0))
    np.testing.assert_allclose(
        scale.deviation[:3], rows[:, :3].std(0, ddof=1), **rounding(torch.float64, condition=64.0)
    )
    assert scale.deviation[3] == 1.0  # what does not vary is not blown up


def test_policies_are_weights_between_minus_one_and_one():
    assert (Swimmer().dim, Hopper().dim) == (16, 33)
    assert Hopper().bounds.tolist() == [[-1.0] * 33, [1.0] * 33]


def test_options_are_checked():
    with pytest.raises((OptionError, ValueRangeError), match="scaling"):
        Swimmer(scaling="leaked")
    with pytest.raises((OptionError, ValueRangeError), match="num_episodes"):
        Hopper(num_episodes=0)


@pytest.mark.usefixtures("has_mujoco")
class TestEpisodes:
    def test_the_same_starts_give_the_same_reward(self, rng):
        problem = Hopper(scaling="leaked", num_episodes=2)
        X = 2.0 * torch.rand(3, 33, generator=rng, dtype=torch.float64) - 1.0
        assert_close(problem(X), problem(X), rtol=0.0, atol=0.0)
        assert_close(problem(X[1:2]), problem(X)[1:2], rtol=0.0, atol=0.0)
        first, second = (problem.observe(X, torch.Generator().manual_seed(5)) for _ in range(2))
        assert_close(first, second, rtol=0.0, atol=0.0)

    def test_a_value_is_the_mean_over_episodes(self, rng):
        x = 2.0 * torch.rand(33, generator=rng, dtype=torch.float64) - 1.0
        problem = Hopper(scaling="none", num_episodes=3, seed=4)
        each = [problem.play(x, [seed]) for seed in (4, 5, 6)]
        assert float(problem(x.unsqueeze(0))) == pytest.approx(np.mean(each), **within(rounding(torch.float64)))

    def test_scalings_differ(self, rng):
        X = 2.0 * torch.rand(1, 33, generator=rng, dtype=torch.float64) - 1.0
        values = {scaling: float(Hopper(scaling=scaling)(X)) for scaling in ("none", "leaked", "running")}
        assert len(set(values.values())) == 3

    def test_actions_are_not_clipped(self):
        """The control cost of the swimmer grows with the square of actions beyond those that move it."""
        scale = ObservationScale(2, np.full(8, -1.0), np.ones(8))
        small, large = (
            play_episode("Swimmer-v5", np.full((2, 8), weight), seed=0, scale=scale, num_steps=1).reward
            for weight in (1.0, 100.0)
        )
        assert large < small - 1.0
