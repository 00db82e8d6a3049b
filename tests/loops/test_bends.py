"""Where outcomes begin to count by their logarithm."""

import math

import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods import Gaussian
from streamgp.loops.outcomes import Outcome
from streamgp.loops.units import OutcomeUnits, bend_around, bend_bad
from streamgp.testing.tolerances import tolerance


def _double(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_constraint_is_bent_where_it_is_farther_from_its_bound_than_the_other_side_reaches(sign):
    z = 1.0 + sign * _double(-0.5, -0.2, 0.1, 30.0, 2e3)
    assert bend_around(z, [1.0]) == OutcomeUnits(lower_knee=0.5, upper_knee=1.5, width=0.5)


def test_the_bend_is_odd_about_a_single_bound():
    units = bend_around(_double(-0.5, 0.1, 30.0), [0.0])
    z = torch.linspace(-40.0, 40.0, 81, dtype=torch.float64)
    assert_close(units.bent(z), -units.bent(-z))


def test_between_two_bounds_nothing_is_bent():
    units = bend_around(_double(-900.0, -1.5, 0.0, 0.4, 5.0), [-1.0, 1.0])
    # The deepest outcome is 1 away from both bounds.
    assert units == OutcomeUnits(lower_knee=-2.0, upper_knee=2.0, width=1.0)


def test_as_long_as_nothing_is_feasible_the_nearest_outcomes_are_the_measure():
    units = bend_around(_double(4.0, 8.0, 12.0, 500.0, 9e4), [0.0])
    assert units.width == 8.0


@pytest.mark.parametrize(
    "z", [_double(-1.0, 0.2, 1.5), _double(0.0, 0.0, 0.0), _double(3.0, 3.0, 3.0)], ids=["even", "at", "alike"]
)
def test_what_is_about_as_far_on_both_sides_is_not_bent(z):
    assert bend_around(z, [0.0]) == OutcomeUnits()


@pytest.mark.parametrize("factor", [1.0, 1e-200, 1e200])
def test_bends_follow_the_users_units(factor):
    y = factor * _double(-0.5, 0.1, 30.0, 2e3)
    units = Outcome.read("gaussian").find_units(y, is_reversed=False, is_bent=True, bounds=(0.0,))
    assert units.width == pytest.approx(0.5 * factor)
    assert_close(units.outside(units.inside(y)) / factor, y / factor, **tolerance(torch.float64, scale=2e3))
    assert math.isclose(float(units.inside(y).std(correction=0)), 1.0)


@pytest.mark.parametrize(
    "likelihood", [Gaussian(0.1), "student_t", "poisson"], ids=["known noise", "outliers", "counts"]
)
def test_only_real_outcomes_of_unknown_noise_without_outliers_are_bent(likelihood):
    y = _double(0.0, 1.0, 30.0, 2e3)
    units = Outcome.read(likelihood).find_units(y, is_reversed=False, is_bent=True, bounds=(0.5,))
    assert not units.is_bent


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_objective_is_bent_beyond_what_is_good_and_as_far_again(sign):
    z = -sign * _double(0.0, 1.0, 4.0, 50.0, 900.0)
    few, half = (bend_bad(z, sign=sign, good_share=share) for share in (0.25, 0.5))
    side = "lower_knee" if sign > 0 else "upper_knee"
    assert few == OutcomeUnits(scale=sign, width=1.0, **{side: -2.0 * sign})
    assert half == OutcomeUnits(scale=sign, width=4.0, **{side: -8.0 * sign})


def test_an_objective_without_bad_outcomes_is_not_bent():
    assert bend_bad(_double(0.0, 1.0, 2.0), sign=1.0, good_share=0.5) == OutcomeUnits()
