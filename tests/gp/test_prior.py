import gpytorch
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ValueRangeError
from streamgp.gp import Prior
from streamgp.testing.tolerances import rounding, tolerance

X = torch.linspace(0, 1, 4, dtype=torch.float64).unsqueeze(-1)


def test_later_training_does_not_reach_a_snapshot():
    kernel, mean = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()), gpytorch.means.ConstantMean()
    prior = Prior.snapshot(kernel, mean, like=X)
    before = prior.covariance(X, X), prior.mean(X)
    kernel.outputscale, mean.constant.data = 7.0, torch.tensor(3.0)
    assert torch.equal(prior.covariance(X, X), before[0])
    assert torch.equal(prior.mean(X), before[1])
    assert prior.covariance(X, X).dtype == torch.float64
    assert not any(parameter.requires_grad for parameter in prior.kernel.parameters())


@pytest.mark.parametrize(
    "mean", [gpytorch.means.ZeroMean(), gpytorch.means.ConstantMean(), gpytorch.means.LinearMean(1)]
)
def test_means_equal_those_of_gpytorch(mean):
    for parameter in mean.parameters():
        parameter.data.fill_(0.7)
    prior = Prior.snapshot(gpytorch.kernels.RBFKernel(), mean, like=X)
    assert_close(prior.mean(X), mean.double()(X).detach(), **rounding(X.dtype))


def test_the_variance_is_the_diagonal_of_the_covariance():
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.LinearKernel() + gpytorch.kernels.RBFKernel())
    prior = Prior.snapshot(kernel, gpytorch.means.ZeroMean(), like=X)
    assert_close(prior.variance(X), prior.covariance(X, X).diagonal(), **rounding(X.dtype))


def test_leading_axes_are_those_of_kernel_and_mean_together():
    kernel = gpytorch.kernels.RBFKernel(batch_shape=torch.Size([3, 1]))
    prior = Prior.snapshot(kernel, gpytorch.means.ConstantMean(batch_shape=torch.Size([2])), like=X)
    assert prior.batch_shape == (3, 2)
    assert prior.mean(X).shape == (2, 4)


def test_a_kernel_with_an_infinite_parameter_is_refused_by_its_name():
    kernel = RBFKernel().double().initialize(lengthscale=1e39)
    with pytest.raises(ValueRangeError, match="kernel's parameter raw_lengthscale"):
        sg.SparseGP.from_prior(kernel, torch.zeros(1, 1, dtype=torch.float64))


@pytest.mark.parametrize(("first", "second"), [((), (3,)), ((3,), ()), ((3,), (3,)), ((2, 1), (3,)), ((), ())])
def test_covariances_of_sets_with_leading_axes_are_those_of_each_pair(rng, first, second):
    X = torch.rand(*first, 4, 2, generator=rng, dtype=torch.float64)
    Z = torch.rand(*second, 5, 2, generator=rng, dtype=torch.float64)
    prior = Prior.snapshot(ScaleKernel(MaternKernel(2.5)), ZeroMean(), like=X)
    K = prior.covariance(X, Z)
    shape = torch.broadcast_shapes(first, second)
    assert K.shape == (*shape, 4, 5)
    pairs = zip(X.expand(*shape, 4, 2).reshape(-1, 4, 2), Z.expand(*shape, 5, 2).reshape(-1, 5, 2), strict=True)
    expected = torch.stack([prior.kernel(x, z).to_dense() for x, z in pairs]).reshape(K.shape)
    assert_close(K, expected, **tolerance(X.dtype))
