"""Moments of rows under a prior: variances without covariances, blocks without the whole, batches of kernels."""

import gpytorch
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.gp import Prior, functionals
from streamgp.testing.tolerances import tolerance


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


def test_a_mean_without_forward_mode_is_refused_by_name(rng):
    class Rounded(gpytorch.means.Mean):
        def forward(self, x):
            return torch.from_numpy(x.detach().numpy().round()).sum(-1)

    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    prior = Prior.snapshot(RBFKernel().double(), Rounded(), like=X)
    with pytest.raises(sg.errors.UnsupportedError, match="The mean Rounded has no forward mode"):
        prior.mean(sg.evidence.gradient(X))
