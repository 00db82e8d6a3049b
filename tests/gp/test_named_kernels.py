"""Kernels by name."""

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError
from streamgp.gp.named_kernels import NAMED_KERNELS, make_kernel


@pytest.mark.parametrize("name", NAMED_KERNELS)
def test_kernels_do_not_depend_on_the_units_of_a_box(rng, name):
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    lower, upper = torch.tensor([[-1.0, 5.0], [3.0, 6.0]], dtype=torch.float64)
    one = make_kernel(name, torch.zeros_like(lower), torch.ones_like(lower), variance=2.0)
    other = make_kernel(name, lower, upper, variance=2.0)
    assert_close(other(lower + (upper - lower) * X).to_dense(), one(X).to_dense())
    assert_close(one(X, diag=True), torch.full((4,), 2.0, dtype=torch.float64))
    assert_close(make_kernel(name, lower, upper)(X, diag=True), torch.ones(4, dtype=torch.float64))


def test_an_input_that_does_not_vary_has_a_width_of_one():
    lower = torch.zeros(2, dtype=torch.float64)
    kernel = make_kernel("rbf", lower, torch.tensor([0.0, 1.0], dtype=torch.float64))
    assert kernel.base_kernel.lengthscale[0, 0] == kernel.base_kernel.lengthscale[0, 1]


def test_a_name_that_no_kernel_has_is_refused(rng):
    X = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    with pytest.raises(OptionError, match="one of 'interactions', 'matern', 'rbf', 'spherical_linear', but is 'cubic'"):
        sg.fit(X, X.sum(-1), kernel="cubic")
    with pytest.raises(OptionError, match="but is 'cubic'"):
        sg.Optimizer([(0.0, 1.0)], kernel="cubic")


@pytest.mark.slow
def test_the_optimizer_takes_a_name(rng):
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2, kernel="spherical_linear", num_initial=4)
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    optimizer.tell(X, -(X - 0.4).square().sum(-1))
    assert ((optimizer.ask() >= 0.0) & (optimizer.ask() <= 1.0)).all()
