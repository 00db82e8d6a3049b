import pytest
import torch
from torch.testing import assert_close

from streamgp.acquisition.discrete_knowledge_gradient import expected_maximum_of_lines
from streamgp.testing.tolerances import rounding, tolerance, within


def by_quadrature(a, b):
    z = torch.linspace(-9.0, 9.0, 400_001, dtype=torch.float64)
    density = torch.exp(-0.5 * z.square()) / (2 * torch.pi) ** 0.5
    highest = (a.double().unsqueeze(-1) + b.double().unsqueeze(-1) * z).amax(-2)
    return torch.trapezoid(highest * density, z, dim=-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("batch_shape", [(), pytest.param((4,), marks=pytest.mark.thorough), (2, 3)])
def test_the_expectation_is_that_of_quadrature(rng, batch_shape, dtype):
    a, b = (torch.randn(*batch_shape, 12, generator=rng, dtype=torch.float64).to(dtype) for _ in range(2))
    found = expected_maximum_of_lines(a, b)
    assert found.shape == batch_shape
    assert found.dtype == dtype
    bound = tolerance(dtype) if dtype == torch.float32 else {"rtol": 1e-8, "atol": 1e-8}  # of the quadrature
    assert_close(found.double(), by_quadrature(a, b), **bound)


def test_lines_of_equal_slope_and_repeated_ones_count_once():
    a = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    b = torch.tensor([0.5, 0.5, 0.5, 0.5], dtype=torch.float64)
    assert expected_maximum_of_lines(a, b).item() == pytest.approx(1.0)
    assert expected_maximum_of_lines(a, torch.zeros(4).double()).item() == pytest.approx(1.0)


def test_two_lines_have_a_known_expectation():
    # The larger of Z and -Z is the half-normal, whose mean is the square root of 2 / pi.
    found = expected_maximum_of_lines(torch.zeros(2).double(), torch.tensor([1.0, -1.0]).double())
    assert found.item() == pytest.approx((2 / torch.pi) ** 0.5, **within(rounding(torch.float64)))


def test_gradients_reach_intercepts_and_slopes(rng):
    a, b = (torch.randn(3, 6, generator=rng, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(expected_maximum_of_lines, (a, b))
