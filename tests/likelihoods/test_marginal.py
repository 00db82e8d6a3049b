import math

import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods.marginal import concave_drops, log_concave_marginal, log_marginal
from streamgp.testing.tolerances import approximation, tolerance

# A Gaussian of any width integrates in closed form, log N(m | y, v + s^2), also when it is far narrower than N(m, v).
WIDTHS = [1e-3, 0.05, 1.0, 300.0]


def gaussian(width, y):
    def log_density(f):
        return -0.5 * ((f - y) / width) ** 2 - math.log(width * math.sqrt(2.0 * math.pi))

    def derivatives(f):
        return (y - f) / width**2, torch.full_like(f, -(width**-2))

    return log_density, derivatives


def problem(dtype):
    mean = torch.tensor([0.0, 1.0, -3.0], dtype=dtype)
    variance = torch.tensor([1.0, 4.0, 0.0], dtype=dtype)
    y = torch.tensor([0.5, 9.0, -3.01], dtype=dtype)
    return mean, variance, y


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_concave_integral_of_a_gaussian_is_a_gaussian(width, dtype):
    mean, variance, y = problem(dtype)
    log_density, derivatives = gaussian(width, y)
    expected = -0.5 * (y - mean).double() ** 2 / (variance.double() + width**2)
    expected = expected - 0.5 * torch.log(2.0 * math.pi * (variance.double() + width**2))
    value = log_concave_marginal(log_density, derivatives, mean, variance)
    # In single precision f = 9 is known to 1e-6, a thousandth of the smallest width.
    assert_close(value, expected.to(dtype), **tolerance(dtype, scale=10.0))


@pytest.mark.parametrize("width", [0.01, 0.05, 1.0, 300.0])
def test_general_integral_of_a_gaussian_is_a_gaussian(width):
    mean, variance, y = problem(torch.float64)
    log_density, _ = gaussian(width, y)
    total = variance + width**2
    expected = -0.5 * ((y - mean) ** 2 / total + torch.log(2.0 * math.pi * total))
    assert_close(log_marginal(log_density, mean, variance, num_axes=1), expected, **approximation(1e-6, "quadrature"))


def test_general_integral_sees_both_of_two_mirrored_peaks():
    mean = torch.zeros(1, dtype=torch.float64)

    def two_peaks(f):
        return torch.logaddexp(-0.5 * (f - 4.0) ** 2 / 0.25, -0.5 * (f + 4.0) ** 2 / 0.25)

    one = log_marginal(lambda f: -0.5 * (f - 4.0) ** 2 / 0.25, mean, mean + 1.0, num_axes=1)
    both = log_marginal(two_peaks, mean, mean + 1.0, num_axes=1)
    assert_close(both, one + math.log(2.0), **approximation(1e-8, "quadrature"))


@pytest.mark.parametrize("width", [1e-4, 0.3, 1.0])
def test_drop_is_found_to_within_a_factor_of_two(width):
    peak = torch.tensor([0.7], dtype=torch.float64)
    distances = concave_drops(lambda t: -0.5 * ((t - 0.7) / width) ** 2, peak, widest=10.0)
    exact = width * math.sqrt(72.0)
    for distance in distances:
        assert exact <= distance.item() < 2.0 * exact
