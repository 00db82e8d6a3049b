"""Robots stepped in MuJoCo: the same numbers as Gymnasium's own environments."""

import numpy as np
import pytest
import torch

from paper.datasets import read_table
from paper.problems.mujoco import ObservationScale, play_episode
from paper.problems.robot_simulation import make_simulation
from streamgp.errors import UnsupportedError
from streamgp.testing.tolerances import rounding, within


@pytest.mark.parametrize(("name", "shape", "size"), [("Swimmer-v5", (2, 8), 1.0), ("Hopper-v5", (3, 11), 0.3)])
@pytest.mark.parametrize("seed", [0, 7])
def test_episodes_are_those_of_gymnasium(name, shape, size, seed):
    gymnasium = pytest.importorskip("gymnasium")
    pytest.importorskip("mujoco")
    policy = size * np.random.default_rng(seed).uniform(-1.0, 1.0, shape)
    environment, simulation = gymnasium.make(name).unwrapped, make_simulation(name)
    theirs, _ = environment.reset(seed=seed)
    ours, is_over, num_steps = simulation.reset(seed), False, 0
    while not is_over and num_steps < 60:
        assert np.array_equal(ours, theirs)
        action = policy @ ours
        theirs, expected, is_expected, _, _ = environment.step(action)
        ours, reward, is_over = simulation.step(action)
        assert reward == pytest.approx(expected, **within(rounding(torch.float64, condition=100.0)))
        assert is_over == is_expected
        num_steps += 1
    assert num_steps > 5
    assert is_over == (name == "Hopper-v5")  # which falls with these policies


@pytest.mark.usefixtures("data_directory")
def test_a_published_policy_hops_on_with_the_masses_of_its_year_and_falls_without_them():
    pytest.importorskip("mujoco")
    table = read_table("robots/ars_hopper_v1_policy.csv").numpy()
    policy, scale = table[:3], ObservationScale(2, table[3], np.square(table[4]))
    masses = make_simulation("Hopper-v2")._environment.model.body_mass[1:]
    # As mujoco-py printed them.
    assert masses == pytest.approx([3.53429174, 3.92699082, 2.71433605, 5.0893801], rel=1e-8)
    old, new = (
        [play_episode(name, policy, seed=seed, scale=scale, is_counted=False).reward for seed in range(6)]
        for name in ("Hopper-v2", "Hopper-v5")
    )
    assert sorted(old)[2] > 3500.0  # from most starts
    assert max(new) < 2000.0


def test_other_robots_are_refused():
    with pytest.raises(UnsupportedError, match="Swimmer-v5, Hopper-v5, Hopper-v2"):
        make_simulation("Ant-v5")
