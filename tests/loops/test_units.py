import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods import Gaussian
from streamgp.loops.units import OutcomeUnits
from streamgp.testing.tolerances import tolerance

UNITS = {
    "plain": OutcomeUnits(),
    "scaled": OutcomeUnits(3.0, 0.5),
    "reversed": OutcomeUnits(3.0, -0.5),
    "bent": OutcomeUnits(1.0, 2.0, lower_knee=0.0, width=0.5),
    "bent and reversed": OutcomeUnits(1.0, -2.0, upper_knee=2.0, width=0.5),
    "bent on both sides": OutcomeUnits(1.0, 2.0, lower_knee=-1.0, upper_knee=2.0, width=0.5),
}


@pytest.fixture(params=UNITS)
def units(request):
    return UNITS[request.param]


def test_what_goes_inside_comes_back(units):
    y = torch.linspace(-20.0, 20.0, 41, dtype=torch.float64)
    assert_close(units.outside(units.inside(y)), y, **tolerance(torch.float64, scale=20.0))


def test_the_slope_is_the_derivative_of_the_way_back(units):
    f = torch.linspace(-3.05, 3.0, 12, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(units.outside(f).sum(), f)
    assert_close(units.slope(f.detach()), expected.abs(), **tolerance(torch.float64, scale=float(expected.abs().max())))


def test_the_logarithm_of_the_change_is_that_of_the_derivative_of_the_way_in(units):
    y = torch.linspace(-5.05, 5.0, 12, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(units.inside(y).sum(), y)
    assert_close(units.log_change(y.detach()), expected.abs().log(), **tolerance(torch.float64, scale=5.0))


def test_only_outcomes_beyond_the_knee_are_bent():
    units = UNITS["bent"]
    y = torch.tensor([-4.0, -0.1, 0.0, 0.1, 5.0], dtype=torch.float64)
    assert (units.bent(y) == y).tolist() == [False, False, True, True, True]
    assert bool((units.bent(y).diff() > 0).all())
    both = UNITS["bent on both sides"]
    y = torch.tensor([-4.0, -1.1, -1.0, 2.0, 2.1, 5.0], dtype=torch.float64)
    assert (both.bent(y) == y).tolist() == [False, False, True, True, False, False]
    assert bool((both.bent(y).diff() > 0).all())


def test_noise_is_scaled_with_the_outcomes():
    scaled = UNITS["reversed"].rescaled(Gaussian(0.5))
    assert float(scaled.noise_variance) == pytest.approx(0.5 / 0.25)


def test_differences_of_enormous_numbers_are_finite():
    units = OutcomeUnits(1e308, 1e308)
    assert torch.isfinite(units.inside(torch.tensor([-1e308], dtype=torch.float64))).all()
