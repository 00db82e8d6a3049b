import math

import pytest
import torch
from torch.testing import assert_close

from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import (
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Poisson,
    Preference,
    StudentT,
    Volatility,
)
from streamgp.loops.outcomes import Constraint, Objective, Outcome, OutcomeUnits
from streamgp.testing.tolerances import approximation, rounding, tolerance, within

SAME = within(rounding(torch.float64))


NAMES = {
    "gaussian": Gaussian,
    "student_t": StudentT,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
    "bernoulli": Bernoulli,
    "preference": Preference,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_likelihood_is_read_by_name(name):
    assert isinstance(Outcome.read(name).likelihood, NAMES[name])


@pytest.mark.parametrize("is_reversed", [False, True])
def test_real_outcomes_are_standardized_and_come_back(rng, is_reversed):
    y = 40.0 + 7.0 * torch.randn(50, generator=rng, dtype=torch.float64)
    units = Outcome.read("gaussian").find_units(y, is_reversed=is_reversed)
    inside = units.inside(y)
    assert_close(inside.mean(), torch.zeros((), dtype=torch.float64), **tolerance(torch.float64))
    assert_close(inside.std(correction=0), torch.ones((), dtype=torch.float64), **tolerance(torch.float64))
    assert (inside[0] > inside[1]) == ((y[0] > y[1]) != is_reversed)
    assert_close(units.outside(inside), y, **tolerance(torch.float64, scale=40.0))


def test_outliers_do_not_stretch_the_units_of_a_student_t(rng):
    y = torch.randn(101, generator=rng, dtype=torch.float64)
    outlying = torch.cat([y, torch.full((3,), 1e6, dtype=torch.float64)])
    units = Outcome.read("student_t").find_units(outlying, is_reversed=False)
    assert 0.5 < units.scale < 2.0
    assert abs(units.offset) < 0.5


@pytest.mark.parametrize("value", [3.0, 0.0, 1e9])
def test_equal_outcomes_have_a_scale_of_one(value):
    units = Outcome.read("gaussian").find_units(torch.full((4,), value, dtype=torch.float64), is_reversed=False)
    assert units == OutcomeUnits(value, 1.0)


def test_counts_and_classes_keep_their_units():
    y = torch.tensor([0.0, 5.0, 100.0], dtype=torch.float64)
    assert Outcome.read("poisson").find_units(y, is_reversed=True) == OutcomeUnits()


def test_the_numbers_of_a_likelihood_object_are_in_the_users_units():
    units = OutcomeUnits(10.0, -4.0)
    gaussian = Outcome.read(Gaussian(8.0, is_learned=False)).in_units(units)
    assert gaussian.noise_variance == 0.5
    assert not gaussian.is_learned
    assert Outcome.read(StudentT(5.0, 2.0)).in_units(units).scale == 0.5
    assert Outcome.read("gaussian").in_units(units).noise_variance == 0.05


@pytest.mark.parametrize(
    ("likelihood", "response", "latent"),
    [
        (Poisson(2.0), 6.0, math.log(3.0)),
        (Bernoulli(), 0.9, math.log(9.0)),
        (Bernoulli("probit"), 0.5, 0.0),
        (Binomial(10), 2.0, math.log(0.25)),
        (Gaussian(1.0), 6.0, 1.0),
    ],
)
def test_a_bound_on_the_mean_becomes_one_on_the_latent_function(likelihood, response, latent):
    assert Outcome.read(likelihood).latent(response, OutcomeUnits(4.0, 2.0)) == pytest.approx(latent, **SAME)


def test_a_constraint_has_limits_in_the_units_of_the_model():
    assert Constraint(upper=6.0).limits(OutcomeUnits(4.0, 2.0)) == (None, 1.0)
    assert Constraint(lower=0.0, upper=6.0).limits(OutcomeUnits(4.0, 2.0)) == (-2.0, 1.0)
    lower, upper = Constraint(lower=0.5, likelihood="bernoulli").limits(OutcomeUnits())
    assert lower == pytest.approx(0.0, **SAME)
    assert upper is None


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: Outcome.read("normal"), OptionError, "must be one of .*'gaussian'.*but is 'normal'"),
        (lambda: Outcome.read("binomial"), OptionError, r"Pass streamgp.likelihoods.Binomial\(total_count\)"),
        (lambda: Outcome.read(3), ArgumentTypeError, "must be a name or one of streamgp.likelihoods, but is a int"),
        (lambda: Outcome.read(Volatility()), UnsupportedError, "there is nothing to look for"),
        (
            lambda: Outcome.read(Poisson(torch.ones(3))).check_constants(None),
            UnsupportedError,
            "has a exposure for each observation",
        ),
        (lambda: Constraint(), OptionError, "must have an upper or a lower bound"),
        (lambda: Constraint(lower=2.0, upper=1.0), ValueRangeError, "the lower below the upper, but are 2.0 and 1.0"),
        (lambda: Constraint(upper=math.nan), ValueRangeError, "must be finite"),
        (lambda: Constraint(upper=1.5, likelihood="bernoulli"), ValueRangeError, "between 0 and 1, but is 1.5"),
        (lambda: Constraint(upper=1.0, likelihood="preference"), UnsupportedError, "Preference compares 2"),
    ],
)
def test_wrong_outcomes_are_refused_with_a_sentence(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


@pytest.mark.parametrize("size", [1e-160, 1e160, 1e308])
def test_units_of_any_size_keep_outcomes_finite(size):
    y = size * torch.tensor([-1.0, 0.2, 1.0], dtype=torch.float64)
    units = Outcome.read("gaussian").find_units(y, is_reversed=False)
    inside = units.inside(y)
    assert_close(inside.std(correction=0), torch.ones((), dtype=torch.float64), **tolerance(torch.float64))
    assert_close(units.outside(inside) / size, y / size, **tolerance(torch.float64))
    known = Outcome.read(Gaussian(size, is_learned=False)).in_units(units)
    assert known.noise_variance.isfinite()


def test_only_what_cannot_change_its_sign_has_a_weight():
    weights = {
        (name, maximize): Objective(likelihood=name, maximize=maximize).weight
        for name in ("gaussian", "poisson")
        for maximize in (True, False)
    }
    assert [key for key, weight in weights.items() if weight < 0] == [("poisson", False)]


@pytest.mark.parametrize("is_reversed", [True, False])
def test_outcomes_that_are_far_too_bad_count_by_their_logarithm_and_come_back(is_reversed):
    sign = 1.0 if is_reversed else -1.0
    y = sign * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 1e3, 1e6], dtype=torch.float64)
    units = Outcome.read("gaussian").find_units(y, is_reversed=is_reversed, is_bent=True)
    # The median is 4, and the best is better by 3.
    assert (units.upper_knee if is_reversed else units.lower_knee, units.width) == (sign * 7.0, 3.0)
    inside = units.inside(y)
    assert_close(inside.mean(), torch.zeros((), dtype=torch.float64))
    assert_close(inside.std(correction=0), torch.ones((), dtype=torch.float64))
    assert (inside.diff() < 0).all()
    assert_close(inside[:5].diff(), inside[1].sub(inside[0]).expand(4))
    assert_close(units.outside(inside), y)
    step = 1e-6
    slope = (units.outside(inside + step) - units.outside(inside - step)).abs() / (2.0 * step)
    assert_close(units.slope(inside), slope, **approximation(1e-6, "finite differences"))


def test_outcomes_without_a_tail_and_those_in_known_units_stay_linear():
    even, tail = torch.arange(9.0, dtype=torch.float64), torch.tensor([1.0, 2.0, 3.0, 1e6], dtype=torch.float64)
    assert not Outcome.read("gaussian").find_units(even, is_reversed=True, is_bent=True).is_bent
    assert not Outcome.read("gaussian").find_units(tail, is_reversed=True).is_bent
    assert not Outcome.read(Gaussian(0.1)).find_units(tail, is_reversed=True, is_bent=True).is_bent
    assert not Outcome.read("gaussian").find_units(tail, is_reversed=False, is_bent=True).is_bent
    same = torch.ones(5, dtype=torch.float64)
    assert not Outcome.read("gaussian").find_units(same, is_reversed=True, is_bent=True).is_bent
