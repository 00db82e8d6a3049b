import math

import pytest
import torch

from streamgp.acquisition.trust_region import Region, draw_in_region, update_region
from streamgp.errors import ValueRangeError
from streamgp.optimizers import RegionRules
from streamgp.testing.tolerances import judgement, within

RULES = RegionRules()


def values(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def update(region, *numbers, num_dims=6, rules=RULES):
    return update_region(region, values(*numbers), num_dims=num_dims, rules=rules)


def test_ten_successes_in_a_row_double_the_length():
    region = Region(0.8, best=0.0)
    for step in range(1, 10):
        region, info = update(region, float(step))
        assert info.is_success
        assert (region.length, region.num_successes) == (0.8, step)
    region, _ = update(region, 10.0)
    assert (region.length, region.num_successes, region.best) == (1.6, 0, 10.0)


def test_the_length_never_exceeds_its_bound():
    region = Region(1.6, best=0.0, num_successes=9)
    assert update(region, 1.0)[0].length == 1.6


@pytest.mark.parametrize(("q", "num_dims"), [(1, 6), (4, 6), (3, 2), (100, 60), (7, 60), (2, 1)])
def test_failures_halve_the_length_after_as_many_steps_as_in_the_paper(q, num_dims):
    tolerance = math.ceil(max(4 / q, num_dims / q))
    region = Region(0.8, best=1.0)
    for _ in range(tolerance - 1):
        region, info = update(region, *[0.0] * q, num_dims=num_dims)
        assert not info.is_success
        assert region.length == 0.8
    region, _ = update(region, *[0.0] * q, num_dims=num_dims)
    assert (region.length, region.num_failed) == (0.4, 0)


def test_a_success_needs_an_improvement_relative_to_the_best_value():
    for best in (100.0, -100.0):
        region = Region(0.8, best=best, num_successes=2)
        after, info = update(region, best + 0.09)
        assert not info.is_success
        assert (after.best, after.num_successes) == (best + 0.09, 0)
        after, info = update(region, best + 0.11)
        assert info.is_success
        assert (after.best, after.num_successes, after.num_failed) == (best + 0.11, 3, 0)


def test_a_region_below_the_least_length_is_exhausted():
    region = Region(2.0**-7, best=1.0)
    after, info = update(region, *[0.0] * 6)
    assert info.is_exhausted
    assert after.length == 2.0**-8
    assert not update(Region(2.0**-6, best=1.0), *[0.0] * 6)[1].is_exhausted


def test_failed_evaluations_count_as_no_success():
    region, info = update(Region(0.8, best=1.0), *[math.nan] * 6)
    assert not info.is_success
    assert (region.length, region.best) == (0.4, 1.0)
    region, info = update(Region(0.8, best=1.0), math.nan, 2.0)
    assert info.is_success
    assert region.best == 2.0


def test_the_first_value_of_all_is_a_success():
    region, info = update(Region(0.8), -5.0)
    assert info.is_success
    assert region.best == -5.0


def test_nothing_told_changes_nothing():
    region = Region(0.8, best=1.0, num_successes=3)
    assert update(region)[0] == region


@pytest.mark.parametrize("num_dims", [1, 3, 60])
def test_candidates_stay_in_the_box_and_each_differs_from_the_center(rng, num_dims):
    center = torch.rand(num_dims, generator=rng).double()
    lengthscale = 0.1 + torch.rand(num_dims, generator=rng).double()
    C = draw_in_region(500, center, length=0.3, lengthscale=lengthscale, generator=rng)
    weights = lengthscale / lengthscale.log().mean().exp()
    assert C.shape == (500, num_dims)
    assert ((C >= 0) & (C <= 1)).all()
    assert ((C - center).abs() <= 0.15 * weights + 1e-12).all()
    is_changed = center != C
    assert is_changed.any(-1).all()
    share, expected = is_changed.double().mean(), min(1.0, 20 / num_dims)
    assert abs(share - expected) < 5 * (expected * (1 - expected) / is_changed.numel()) ** 0.5 + 1e-3


@pytest.mark.parametrize("huge", [1e3, 1e37])
def test_a_lengthscale_without_end_leaves_the_other_sides_long_enough_to_search(rng, huge):
    """As half-Cauchy priors have them: sides would be 3e-6 to 1e32 times the length."""
    lengthscale = torch.tensor([1.0, 1.0, 1.0, huge], dtype=torch.float64)
    center = torch.full((4,), 0.5, dtype=torch.float64)
    C = draw_in_region(500, center, length=0.1, lengthscale=lengthscale, generator=rng)
    side = 0.1 * 20.0**-0.25  # three sides, and one that is 20 times longer, have the geometric mean 0.1
    assert (C.amax(0) - C.amin(0))[:3].tolist() == pytest.approx([side] * 3, **within(judgement(relative=0.02)))


def test_candidates_fill_the_box(rng):
    center = torch.full((2,), 0.5).double()
    C = draw_in_region(2000, center, length=0.4, lengthscale=torch.tensor([1.0, 4.0]).double(), generator=rng)
    # Sides 0.4 / 2 and 0.4 * 2, as the geometric mean of the lengthscales is 2.
    for column, half in zip(C.mT, (0.1, 0.4), strict=True):
        assert column.min() == pytest.approx(0.5 - half, **within(judgement(absolute=0.01)))
        assert column.max() == pytest.approx(0.5 + half, **within(judgement(absolute=0.01)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_length": 1.0}, r"in the order min_length, first_length, max_length, but are 1, 0.8, 1.6"),
        ({"success_tolerance": 0}, r"success_tolerance must be a whole number"),
        ({"failure_tolerance": 0}, r"failure_tolerance must be a whole number"),
        ({"improvement": -1.0}, r"improvement must not be negative, but is -1"),
    ],
)
def test_rules_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueRangeError, match=message):
        RegionRules(**options)
