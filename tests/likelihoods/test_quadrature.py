import math

import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods.quadrature import expectation, gauss_hermite, gauss_legendre, standard_deviation
from streamgp.testing.tolerances import rounding, tolerance

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("num_nodes", [5, 32, 75])
def test_gauss_hermite_gives_the_moments_of_a_gaussian(num_nodes, dtype):
    nodes, weights = gauss_hermite(num_nodes, dtype, CPU)
    for power, moment in ((0, 1.0), (1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0), (8, 105.0)):
        assert_close((weights * nodes**power).sum().item(), moment, **tolerance(dtype))


def test_gauss_legendre_integrates_polynomials_on_the_unit_interval():
    nodes, weights = gauss_legendre(6, torch.float64, CPU)
    for power in range(12):
        assert_close((weights * nodes**power).sum().item(), 1.0 / (power + 1.0), **rounding(torch.float64))


def test_nodes_are_kept_for_each_number_and_dtype():
    assert gauss_hermite(9, torch.float64, CPU)[0] is gauss_hermite(9, torch.float64, CPU)[0]
    assert gauss_hermite(9, torch.float32, CPU)[0].dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_expectation_of_an_exponential_is_lognormal(dtype):
    mean = torch.tensor([[-1.0, 0.0], [0.5, 2.0]], dtype=dtype)
    variance = torch.tensor([0.0, 1.5], dtype=dtype)
    value = expectation(torch.exp, mean, variance, num_nodes=32)
    assert_close(value, torch.exp(mean + 0.5 * variance), **tolerance(dtype))


def test_standard_deviation_of_zero_has_a_finite_gradient():
    variance = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    standard_deviation(variance).sum().backward()
    assert math.isfinite(variance.grad.item())
