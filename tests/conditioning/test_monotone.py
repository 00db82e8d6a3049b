"""Functions that are known to rise."""

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.errors import ShapeError, StreamGPWarning

GRID = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)


def wavy(rng):
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = 0.2
    gp = sg.SparseGP.from_prior(kernel, torch.linspace(0, 1, 12, dtype=torch.float64).unsqueeze(-1))
    X = torch.rand(15, 1, generator=rng, dtype=torch.float64)
    y = X[:, 0] + 0.3 * torch.randn(15, generator=rng, dtype=torch.float64)
    return gp.absorb(X, y, noise_variance=0.05, inducing="keep")[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_mean_slopes_have_the_sign_that_is_known(rng, sign):
    gp = wavy(rng)
    mean = gp.predict(GRID).mean
    assert bool((sign * mean.diff() < 0).any())
    after = gp.condition_increasing(GRID, along=[sign]).predict(GRID)
    fall = (sign * after.mean.diff()).clamp_max(0.0)
    assert float(-fall.sum()) < 0.01 * float(after.mean.max() - after.mean.min())


def test_a_function_that_rises_already_needs_no_sign():
    gp = sg.SparseGP.from_prior(RBFKernel().double(), GRID[::10])
    gp, _ = gp.absorb(GRID, 3 * GRID[:, 0], noise_variance=1e-4, inducing="keep")
    assert gp.condition_increasing(GRID, along=[1.0]).num_observations == 0


def test_too_few_signs_are_told_and_batches_refused(rng):
    with pytest.warns(
        StreamGPWarning, match=r"The mean still falls at \d+ of 60 inputs after 1 signs. Raise max_signs"
    ):
        wavy(rng).condition_increasing(GRID, along=[-1.0], max_signs=1)
    batch = sg.SparseGP.from_prior(RBFKernel().double(), torch.rand(2, 3, 1, dtype=torch.float64))
    with pytest.raises(ShapeError, match="Condition the members of a batch one by one"):
        batch.condition_increasing(GRID, along=[1.0])


def test_signs_are_absorbed_with_points_for_them(rng):
    gp = wavy(rng)
    assert (gp.predict(GRID).mean.diff() < 0).any()
    after = gp.absorb_increasing(GRID, along=[1.0])
    assert after.num_inducing <= gp.num_inducing + 10
    mean = after.predict(GRID).mean
    assert float(-mean.diff().clamp_max(0.0).sum()) < 0.01 * float(mean.max() - mean.min())
    expected = gp.condition_increasing(GRID, along=[1.0]).predict(GRID).mean
    assert (mean - expected).abs().max() < 0.1 * float(expected.max() - expected.min())
    assert after.absorb_increasing(GRID, along=[1.0]).process is after.process  # nothing is left to be said
