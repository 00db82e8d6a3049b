import math
from copy import deepcopy

import pytest
import torch
from gpytorch.constraints import GreaterThan, Interval, Positive
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch.testing import assert_close

from streamgp.likelihoods import Bernoulli, Gaussian, StudentT
from streamgp.testing.tolerances import rounding
from streamgp.training.parameters import Hyperparameters, hyperparameter_space


def setting_with(constraint, *, lengthscale=0.7, likelihood=None):
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=2, lengthscale_constraint=constraint)).double()
    kernel.base_kernel.lengthscale = lengthscale
    Z = torch.zeros(3, 2, dtype=torch.float64)
    return Hyperparameters(kernel, ConstantMean().double(), likelihood or Gaussian(0.5), Z, {})


CONSTRAINTS = [
    Positive(),
    GreaterThan(0.1),
    GreaterThan(0.1, transform=None),
    Interval(0.2, 3.0),
    Interval(0.2, 3.0, transform=None),
    Interval(-1.0, 3.0, transform=None),
    Positive(transform=torch.exp, inv_transform=torch.log),
]


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_start_is_the_setting_itself(constraint):
    setting = setting_with(constraint)
    space = hyperparameter_space(setting, learn_inducing=True)
    again, limits = space.setting(space.start), rounding(torch.float64)
    assert_close(again.kernel.base_kernel.lengthscale, setting.kernel.base_kernel.lengthscale, **limits)
    assert_close(again.likelihood.noise_variance, setting.likelihood.noise_variance.double(), **limits)
    lengthscale = space.evaluate(space.start, lambda s: s.kernel.base_kernel.lengthscale)
    assert_close(lengthscale, setting.kernel.base_kernel.lengthscale, **limits)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_no_coordinates_within_bounds_break_a_constraint(rng, constraint):
    space = hyperparameter_space(setting_with(constraint))
    lower, upper = space.bounds
    for _ in range(20):
        x = 5.0 * torch.randn(len(lower), generator=rng, dtype=torch.float64)
        kernel = space.setting(x.clamp(lower, upper)).kernel.base_kernel
        assert (kernel.lengthscale >= constraint.lower_bound - 1e-12).all()
        assert (kernel.lengthscale <= constraint.upper_bound + 1e-12).all()


def test_a_constraint_without_transform_becomes_box_bounds():
    space = hyperparameter_space(setting_with(GreaterThan(0.1, transform=None)))
    lower, upper = space.bounds
    at = space.names.index("kernel.base_kernel.raw_lengthscale")
    assert_close(lower[at], torch.tensor(math.log(0.1), dtype=torch.float64))
    assert upper[at] == math.inf
    assert torch.isinf(lower).sum() == len(lower) - 2


def test_frozen_parameters_are_left_out():
    setting = setting_with(Positive())
    setting.kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    setting.mean.raw_constant.requires_grad_(False)
    assert hyperparameter_space(setting).names == ("kernel.raw_outputscale", "likelihood.noise_variance")


def test_likelihoods_bring_what_they_can_learn():
    assert (
        "likelihood.noise_variance" not in hyperparameter_space(setting_with(Positive(), likelihood=Bernoulli())).names
    )
    names = hyperparameter_space(setting_with(Positive(), likelihood=StudentT())).names
    assert {name for name in names if name.startswith("likelihood.")} == {
        f"likelihood.{name}" for name in StudentT().learnable()
    }


def test_evaluating_changes_nothing_and_is_differentiable():
    setting = setting_with(GreaterThan(0.1))
    before = deepcopy(setting.kernel.state_dict())
    space = hyperparameter_space(setting)
    x = (space.start + 1.0).requires_grad_(True)
    value = space.evaluate(x, lambda s: s.kernel.base_kernel.lengthscale.sum() + s.likelihood.noise_variance)
    value.backward()
    assert (x.grad != 0).sum() == 3
    for name, tensor in setting.kernel.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_a_setting_has_parameters_of_its_own():
    space = hyperparameter_space(setting_with(Positive()))
    moved = space.setting(space.start + 1.0)
    assert not torch.equal(moved.kernel.outputscale, space.base.kernel.outputscale)
    assert isinstance(moved.kernel.raw_outputscale, torch.nn.Parameter)
