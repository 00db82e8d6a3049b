"""The laser: an archive, bounds, and values of the process that stands in for the machine."""

import time

import pytest
import torch
from torch.testing import assert_close

from paper.problems import Laser
from paper.problems.laser_simulator import PRIOR_MEAN, load_rows, load_simulator
from streamgp.errors import DatasetError, ValueRangeError
from streamgp.testing.tolerances import tolerance


@pytest.fixture(scope="module")
def laser() -> Laser:
    try:
        load_rows()
    except DatasetError:
        pytest.skip("the data set `laser` is not here")
    return Laser()


def test_rows_are_those_of_the_archive(laser):
    rows = load_rows()
    assert rows.X.shape == (2000, 16)
    # As the description of the data has them.
    assert (round(float(rows.y.min()), 3), round(float(rows.y.max()), 3)) == (0.344, 4.381)
    assert laser.dim == 16
    assert ((laser.bounds[0] <= rows.X) & (laser.bounds[1] >= rows.X)).all()


def test_values_are_the_sum_over_basis_vectors(laser, rng):
    simulator, rows = load_simulator(), load_rows()
    assert len(simulator.rows) == len(set(simulator.rows)) == 600
    lower, upper = laser.bounds
    X = lower + (upper - lower) * torch.rand(20, 16, generator=rng, dtype=torch.float64)
    X = torch.cat([X, rows.X[:20]])
    B = rows.X[list(simulator.rows)]
    squares = ((X.unsqueeze(1) - B).square() * simulator.kernel.inverse_squares).sum(-1)
    covariances = simulator.kernel.signal_variance * (-0.5 * squares).exp()
    expected = PRIOR_MEAN + covariances @ simulator.weights
    # Weights of both signs cancel: the scale of rounding is theirs.
    scale = float((covariances @ simulator.weights.abs()).max())
    assert_close(laser(X), expected, **tolerance(torch.float64, scale=10.0 * scale))
    assert_close(laser(X.reshape(4, 10, 16)), laser(X).reshape(4, 10), **tolerance(torch.float64, scale=scale))


def test_the_simulator_follows_the_measured_energies(laser):
    rows = load_rows()
    error = (laser(rows.X) - rows.y).square().mean().sqrt()
    assert error < 0.4 * rows.y.std()


def test_the_unit_cube_which_the_papers_random_search_draws_from_is_far_from_all_rows(laser):
    X = torch.rand(200, 16, dtype=torch.float64)
    with pytest.raises(ValueRangeError, match="must lie in the bounds of Laser"):
        laser(X)
    assert_close(laser._evaluate(X), torch.ones(200, dtype=torch.float64))


def test_the_best_known_point_is_better_than_all_rows(laser):
    best = laser.optimum
    assert best.inputs is not None
    assert best.value > float(laser(load_rows().X).max())


def test_initial_designs_are_late_rows_with_a_little_noise(laser, rng):
    X, y = laser.initial_design(100, rng)
    late = load_rows().X[-1000:]
    assert X.shape == (100, 16)
    assert all((late == row).all(-1).any() for row in X[:10])
    assert 0.3 < float(y.min()) < float(y.max()) < 4.5


def test_a_hundred_inputs_take_less_than_a_millisecond(laser):
    X = load_rows().X[:100]
    laser(X)
    times = []
    for _ in range(200):
        began = time.thread_time()
        laser(X)
        times.append(time.thread_time() - began)
    # The quickest, as others work on the same machine.
    assert min(times) < 1e-3


def test_noise_has_its_variance(laser, rng):
    X = load_rows().X[:1].expand(4000, -1)
    y = laser.observe(X, rng)
    assert abs(float(y.var()) / 0.01 - 1.0) < 0.15
