import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods.logistic import expected_sigmoid, log_beta, logistic_derivatives, logistic_log_density
from streamgp.testing.tolerances import tolerance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_density_equals_its_definition_for_small_counts(dtype):
    f = torch.linspace(-20.0, 20.0, 41, dtype=dtype)
    a, b = torch.tensor(3.0, dtype=torch.float64), torch.tensor(1.5, dtype=torch.float64)
    expected = 0.7 + a * torch.nn.functional.logsigmoid(f.double()) + b * torch.nn.functional.logsigmoid(-f.double())
    value = logistic_log_density(f, a, b, log_constant=torch.tensor(0.7, dtype=torch.float64))
    assert_close(value, expected.to(dtype), **tolerance(dtype))


def test_second_derivative_at_the_reference_point_is_right_by_autograd_too():
    f = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    five = torch.tensor(5.0, dtype=torch.float64)
    value = logistic_log_density(f, five, five, log_constant=torch.zeros((), dtype=torch.float64))
    (first,) = torch.autograd.grad(value.sum(), f, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), f)
    assert_close(second, logistic_derivatives(f, five, five)[1])


def test_expected_sigmoids_of_both_signs_add_to_one():
    mean = torch.linspace(-5.0, 5.0, 11, dtype=torch.float64)
    variance = torch.full_like(mean, 3.0)
    assert_close(expected_sigmoid(mean, variance) + expected_sigmoid(-mean, variance), torch.ones_like(mean))


def test_log_beta_of_whole_numbers():
    assert_close(log_beta(torch.tensor(3.0), torch.tensor(2.0)), torch.tensor(1.0 / 12.0).log())


def test_what_does_not_hang_on_the_latent_value_is_computed_in_double_precision():
    f, a, b = torch.randn(5), torch.tensor(1e6 + 1), torch.tensor(3e6 + 5)
    constant = torch.tensor(0.0, dtype=torch.float64)
    single = logistic_log_density(f, a, b, log_constant=constant)
    assert torch.equal(single, logistic_log_density(f, a.double(), b.double(), log_constant=constant))
    small = logistic_log_density(f, 1.1 * a, 1.3 * b, log_constant=constant)
    assert torch.equal(small, logistic_log_density(f, (1.1 * a).double(), (1.3 * b).double(), log_constant=constant))
