"""Moments of rows under a prior: variances without covariances, blocks without the whole, batches of kernels."""

import gpytorch
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.gp import Prior, functionals
from streamgp.testing.tolerances import tolerance

X64 = torch.float64


def problem(rng, batch_shape=()):
    kernel = ScaleKernel(RBFKernel(ard_num_dims=2, batch_shape=batch_shape), batch_shape=batch_shape).double()
    kernel.outputscale = 1.0 + torch.arange(kernel.outputscale.numel(), dtype=torch.float64).reshape(batch_shape)
    X = torch.rand(40, 2, generator=rng, dtype=torch.float64)
    sizes = torch.tensor([1, 2, 3, 7, 27])
    areas = sg.evidence.average(X, torch.arange(5).repeat_interleave(sizes), torch.rand(40, generator=rng).double())
    rows = sg.evidence.combine(areas, sg.evidence.gradient(X[:3]), X[:2])
    return Prior.snapshot(kernel, gpytorch.means.ConstantMean().double(), like=X), rows


@pytest.mark.parametrize("batch_shape", [(), (3,)])
def test_variances_are_the_diagonal_of_covariances(rng, batch_shape):
    prior, rows = problem(rng, torch.Size(batch_shape))
    K = prior.covariance(rows, rows)
    assert K.shape == (*batch_shape, 13, 13)
    assert_close(prior.variance(rows), K.diagonal(dim1=-2, dim2=-1), **tolerance(torch.float64))
    assert bool((prior.magnitude(rows) >= prior.variance(rows) * (1 - 1e-12)).all())


def test_blocks_make_no_difference(rng, monkeypatch):
    prior, rows = problem(rng)
    points = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    whole = prior.covariance(rows, rows), prior.covariance(points, rows), prior.variance(rows)
    monkeypatch.setattr(functionals, "_BLOCK_NUMBERS", 300)
    in_parts = prior.covariance(rows, rows), prior.covariance(points, rows), prior.variance(rows)
    for one, other in zip(whole, in_parts, strict=True):
        assert_close(one, other, **tolerance(torch.float64))


def test_means_of_rows_are_sums_of_values_and_slopes(rng):
    _, rows = problem(rng)
    mean = gpytorch.means.LinearMean(2).double()
    with torch.no_grad():
        mean.weights.copy_(torch.tensor([[2.0], [-3.0]]))
        mean.bias.fill_(0.7)
    prior = Prior.snapshot(RBFKernel(), mean, like=rows.points)
    areas, slopes = sg.evidence.total(rows.points[:4], [0, 0, 0, 1]), sg.evidence.gradient(rows.points[:1])
    at = mean(rows.points[:4])
    expected = torch.stack([at[:3].sum(), at[3]])
    assert_close(prior.mean(areas), expected, **tolerance(torch.float64))
    assert_close(prior.mean(slopes), torch.tensor([2.0, -3.0]).double(), **tolerance(torch.float64))
    both = sg.evidence.combine(areas, slopes, sg.evidence.difference(rows.points[:1], rows.points[1:2]))
    expected = torch.cat([expected, torch.tensor([2.0, -3.0]).double(), (at[0] - at[1]).unsqueeze(0)])
    assert_close(prior.mean(both), expected, **tolerance(torch.float64))
    constant = Prior.snapshot(RBFKernel(), gpytorch.means.ConstantMean(), like=rows.points)
    constant.mean_function.constant.fill_(2.0)
    assert_close(constant.mean(both), torch.tensor([6.0, 2.0, 0.0, 0.0, 0.0]).double(), **tolerance(torch.float64))


@pytest.mark.parametrize("power", [1, 2])
def test_features_of_rows_are_those_of_their_kernel(rng, power):
    _, rows = problem(rng)
    kernel = gpytorch.kernels.LinearKernel() if power == 1 else gpytorch.kernels.PolynomialKernel(2)
    prior = Prior.snapshot(kernel, gpytorch.means.ZeroMean(), like=rows.points)
    for each in (rows, sg.evidence.average(rows.points, [0, 1] * (rows.points.shape[-2] // 2))):
        phi = functionals.row_features(prior.kernel_function, each)
        assert_close(phi @ phi.mT, prior.covariance(each, each), **tolerance(torch.float64))
        weights = prior.inducing(rows.points[:0])
        cross = weights.cross(each)
        assert_close(cross.mT @ torch.linalg.solve(weights.covariance(), cross), phi @ phi.mT, **tolerance(X64))


def test_magnitudes_are_squares_of_sums_of_deviations(rng):
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.outputscale = 4.0
    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    prior = Prior.snapshot(kernel, gpytorch.means.ZeroMean(), like=X)
    apart = sg.evidence.difference(X[:2], X[1:])
    assert_close(prior.magnitude(apart), torch.full((2,), 16.0).double(), **tolerance(X64))
    total = sg.evidence.total(X, [0, 0, 0], [1.0, -2.0, 0.5])
    assert_close(prior.magnitude(total), torch.full((1,), (2 * 3.5) ** 2).double(), **tolerance(X64))
    assert_close(prior.magnitude(sg.evidence.gradient(X)), prior.variance(sg.evidence.gradient(X)), **tolerance(X64))
    assert_close(prior.magnitude(X), prior.variance(X), **tolerance(X64))


def test_a_mean_without_forward_mode_is_refused_by_name(rng):
    class Rounded(gpytorch.means.Mean):
        def forward(self, x):
            return torch.from_numpy(x.detach().numpy().round()).sum(-1)

    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    prior = Prior.snapshot(RBFKernel().double(), Rounded(), like=X)
    with pytest.raises(sg.errors.UnsupportedError, match="The mean Rounded has no forward mode"):
        prior.mean(sg.evidence.gradient(X))
