import math

import mpmath
import pytest
import torch
from torch.testing import assert_close

from streamgp.acquisition.noisy_improvement import log_expected_improvement, log_probability_between
from streamgp.testing.tolerances import rounding


def reference(u):
    with mpmath.workdps(60):
        u = mpmath.mpf(u)
        return float(mpmath.log(mpmath.npdf(u) + u * mpmath.ncdf(u)))


def test_log_improvement_equals_sixty_digits_far_into_its_tail():
    u = torch.tensor([-3e6, -2e5, -300.0, -30.0, -5.0, -1.001, -0.999, 0.0, 2.0, 40.0], dtype=torch.float64)
    far = -0.5 * u[:2].square() - 0.5 * math.log(2.0 * math.pi) - 2.0 * torch.log(-u[:2])
    expected = torch.cat([far, torch.tensor([reference(x) for x in u[2:].tolist()], dtype=torch.float64)])
    assert_close(log_expected_improvement(u), expected, **rounding(torch.float64))
    assert_close(log_expected_improvement(u.float()[3:]), expected[3:].float(), **rounding(torch.float32))


def test_its_gradient_is_that_of_its_value():
    u = torch.tensor([-50.0, -4.0, -1.2, -0.8, 0.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(log_expected_improvement, (u,))
    far = torch.tensor([-1e7], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(log_expected_improvement(far), far)
    assert slope.item() == pytest.approx(1e7)


@pytest.mark.parametrize(("lower", "upper"), [(-0.5, 1.0), (None, 1.0), (-0.5, None)])
def test_the_probability_between_limits_equals_sixty_digits(lower, upper):
    means = [-40.0, -3.0, 0.1, 0.3, 5.0, 60.0]
    with mpmath.workdps(500):
        low, high = (-mpmath.inf if lower is None else lower), (mpmath.inf if upper is None else upper)
        ends = [((low - mpmath.mpf(mean)) / 2, (high - mpmath.mpf(mean)) / 2) for mean in means]
        expected = [float(mpmath.log(mpmath.ncdf(b) - mpmath.ncdf(a))) for a, b in ends]
    found = log_probability_between(
        torch.tensor(means, dtype=torch.float64), torch.tensor(2.0, dtype=torch.float64), lower, upper
    )
    assert_close(found, torch.tensor(expected, dtype=torch.float64), **rounding(torch.float64))
