import numpy as np
import pytest
import torch
from scipy.interpolate import splev, splprep
from torch.testing import assert_close

from paper.problems import Rover
from paper.problems.rover_obstacles import OBSTACLE_CENTERS
from streamgp.errors import ValueRangeError
from streamgp.testing.tolerances import rounding


def spline(x):
    """FITPACK's smoothing spline with its default smoothing, and its number of knots."""
    way_points = (1.2 * x.numpy() - 0.1).reshape(30, 2)
    (knots, coefficients, degree), _ = splprep(way_points.T, k=3)
    return np.stack(splev(np.linspace(0, 1, 1000), (knots, coefficients, degree)), axis=-1), len(knots)


def reward_of(path):
    """The reward, one point and one obstacle at a time."""
    centers = np.array(OBSTACLE_CENTERS)
    costs = []
    for point in path:
        is_hit = any(((point >= c - 0.025) & (point < c + 0.025)).all() for c in centers)
        is_outside = not ((point >= 0) & (point < 1)).all()
        costs.append(0.05 + 20 * (is_hit or is_outside))
    total = sum(np.linalg.norm(path[i + 1] - path[i]) * (costs[i] + costs[i + 1]) / 2 for i in range(len(path) - 1))
    return 5 - total - 10 * np.abs(path[0] - 0.05).sum() - 10 * np.abs(path[-1] - 0.95).sum()


def extremes(rng):
    """Corners of the cube, where the residual of the least-squares cubic is largest."""
    alternating = torch.tensor([0.0, 1.0]).repeat(15).repeat_interleave(2)
    corners = torch.randint(2, (20, 60), generator=rng)
    # FITPACK refuses way-points that repeat one after the other.
    return (torch.cat([alternating.unsqueeze(0), corners]).double() + 1e-9 * torch.rand(21, 60).double()).clamp(0, 1)


def test_trajectories_are_those_of_fitpack(rng):
    X = torch.cat([torch.rand(60, 60, generator=rng).double(), 0.999 * extremes(rng)[:1]])
    for path, x in zip(Rover().trajectory(X), X, strict=True):
        expected, num_knots = spline(x)
        assert num_knots == 8  # none inside
        assert_close(path, torch.from_numpy(expected), **rounding(torch.float64, condition=1e3))


def test_the_spline_has_no_inner_knot_in_the_corners_either(rng):
    centered = 1.2 * extremes(rng) - 0.6
    assert (centered.square().sum(-1) < 30 - 60**0.5).all()


@pytest.mark.slow
def test_rewards_are_those_of_a_loop_over_points(rng):
    X = torch.rand(2, 60, generator=rng).double()
    expected = torch.tensor([reward_of(spline(x)[0]) for x in X], dtype=torch.float64)
    assert_close(Rover().evaluate(X), expected, **rounding(torch.float64, condition=1e3, scale=20.0))


@pytest.mark.slow
def test_random_inputs_and_the_diagonal_have_the_known_rewards(rng):
    """Known from running the published problem: 200 random inputs, and the straight line from start to goal."""
    rewards = Rover().evaluate(torch.rand(1000, 60, generator=rng).double())
    assert abs(rewards.mean() + 19.0) < 4 * 5.4 * (1 / 1000 + 1 / 200) ** 0.5
    assert abs(rewards.std() - 5.4) < 4 * 5.4 * (1 / 2000 + 1 / 400) ** 0.5
    line = (torch.linspace(0.05, 0.95, 30).double() + 0.1) / 1.2
    assert abs(Rover().evaluate(line.repeat_interleave(2).unsqueeze(0)) + 2.5) < 0.05


def test_repeated_observations_of_the_diagonal_have_the_known_noise(rng):
    line = ((torch.linspace(0.05, 0.95, 30).double() + 0.1) / 1.2).repeat_interleave(2)
    rewards = Rover().observe(line.expand(300, 60), rng)
    assert 0.01 < rewards.std() < 0.04
    assert (Rover(way_point_variance=0.0).observe(line.expand(3, 60)) == Rover()(line.unsqueeze(0))).all()


def test_no_reward_exceeds_the_stated_bound(rng):
    problem = Rover()
    rewards = problem(torch.rand(500, 60, generator=rng).double())
    assert (rewards < problem.optimum.value).all()
    assert problem.optimum.value == pytest.approx(5 - 0.05 * 0.9 * 2**0.5)
    assert problem.optimum.inputs is None


def test_way_points_at_one_place_give_a_finite_reward():
    X = torch.full((1, 60), 0.5).double()
    # The curve is the point (0.5, 0.5), which misses both ends by 0.45 in each coordinate.
    assert_close(
        Rover()(X), torch.tensor([5.0 - 10 * 4 * 0.45]).double(), **rounding(torch.float64, condition=1e3, scale=20.0)
    )


def test_more_rows_than_are_evaluated_at_once_give_the_same_rewards(rng):
    X = torch.rand(130, 60, generator=rng).double()
    assert_close(Rover()(X)[-5:], Rover()(X[-5:]))
    assert Rover()(X[:0]).shape == (0,)


def test_way_points_outside_the_box_are_refused():
    with pytest.raises(ValueRangeError, match=r"bounds of Rover"):
        Rover()(torch.full((1, 60), 1.1))
