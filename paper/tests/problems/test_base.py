import pytest
import torch

from paper.problems import Branin
from paper.problems.base import add_noise, check_noise_variance, unit_cube
from streamgp.errors import ShapeError, ValueRangeError


def test_inputs_beyond_the_bounds_are_refused_and_rounding_is_clipped():
    problem = Branin()
    lower = problem.bounds[:1]
    assert torch.equal(problem(lower - 1e-7), problem(lower))
    with pytest.raises(ValueRangeError, match=r"bounds of Branin, but 1 of its rows do not, the first at index \(1,\)"):
        problem(torch.cat([lower, lower - 1.0]))
    with pytest.raises(ShapeError, match=r"X must have shape \(..., n, 2\)"):
        problem(lower.squeeze(0))


def test_noise_has_the_stated_variance_and_repeats_with_its_generator(rng):
    zeros, n = torch.zeros(20_000, dtype=torch.float64), 20_000
    noise = add_noise(zeros, 0.25, rng)
    assert abs(noise.var().item() - 0.25) < 5 * 0.25 * (2 / n) ** 0.5
    first, second = (add_noise(zeros, 0.25, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, second)
    assert add_noise(zeros, 0.0, None) is zeros


@pytest.mark.parametrize("variance", [-1.0, float("inf"), float("nan")])
def test_noise_that_makes_no_sense_is_refused(variance):
    with pytest.raises(ValueRangeError, match="noise_variance must not be negative"):
        check_noise_variance(variance)


def test_the_unit_cube_has_sides_of_one():
    assert unit_cube(3).tolist() == [[0.0] * 3, [1.0] * 3]
