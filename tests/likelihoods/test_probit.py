import mpmath
import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods.probit import (
    expected_log_probit,
    expected_probit_derivatives,
    log_probit,
    probit_derivatives,
    signs,
)
from streamgp.testing.tolerances import approximation, rounding, tolerance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_derivatives_are_continuous_where_the_formula_changes(dtype):
    z = torch.tensor([-1e-6, 0.0, 1e-6], dtype=dtype)
    for derivative in probit_derivatives(z):
        limits = approximation(1e-6 + rounding(dtype)["rtol"], "finite differences")
        assert_close(derivative, derivative[1].expand(3), **limits)


def test_derivatives_are_differentiable_everywhere():
    z = torch.tensor([-60.0, -5.0, -0.5, 0.3, 4.0, 60.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(probit_derivatives, (z,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_first_derivative_equals_autograd(dtype):
    z = torch.linspace(-10.0, 10.0, 41, dtype=dtype, requires_grad=True)
    (expected,) = torch.autograd.grad(log_probit(z).sum(), z)
    assert_close(probit_derivatives(z)[0], expected, **tolerance(dtype))


def test_signs_map_zero_and_one():
    assert_close(signs(torch.tensor([0.0, 1.0])), torch.tensor([-1.0, 1.0]))


@pytest.mark.parametrize("z", [-1e3, -40.0, -36.5, -35.5, -3.0, 0.0, 3.0, 8.0])
def test_numbers_far_into_the_tails_are_those_of_sixty_digits(z):
    with mpmath.workdps(60):
        ratio = mpmath.npdf(mpmath.mpf(z)) / mpmath.ncdf(mpmath.mpf(z))
        first, second = float(ratio), float(-ratio * (ratio + z))
        log = float(mpmath.log(mpmath.ncdf(mpmath.mpf(z))))
    # The exponent of the density is rounded in units of its size z^2 / 2, and z^2 times larger numbers cancel.
    limit = torch.finfo(torch.float64).eps * (64.0 + min(abs(z), 36.0) ** 4)
    found = (*expected_probit_derivatives(z, 0.0, num_nodes=3), expected_log_probit(z, 0.0, num_nodes=3))
    assert found == pytest.approx((first, second, log), rel=limit)
