"""Random features: kernels of finite rank that are others on average."""

import pytest
import torch
from gpytorch.kernels import AdditiveKernel, LinearKernel, MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from torch.testing import assert_close

from streamgp.gp import read_kernel
from streamgp.gp.coregionalization import CoregionalizationKernel, output_rows
from streamgp.testing.tolerances import rounding, sampling

NUM_FEATURES, NUM_SETS = 256, 100


def points(rng, *, offset=0.0, d=2):
    return offset + torch.rand(5, d, generator=rng, dtype=torch.float64)


def drawn(kernel, X, rng):
    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    return read_kernel(kernel.double().requires_grad_(False)).random_features(X, NUM_FEATURES, normal)


CASES = {
    "rbf": RBFKernel,
    "scaled matern": lambda: ScaleKernel(MaternKernel(1.5)),
    "some dimensions": lambda: RBFKernel(active_dims=[1]),
    "sum": lambda: AdditiveKernel(ScaleKernel(RBFKernel()), LinearKernel()),
    "scaled sum": lambda: ScaleKernel(RBFKernel() + MaternKernel(active_dims=[0])),
}


@pytest.mark.parametrize("case", CASES)
def test_they_are_the_kernel_on_average(rng, case):
    kernel, X = CASES[case](), points(rng)
    average = torch.stack([drawn(kernel, X, rng).matrix(X, X) for _ in range(NUM_SETS)]).mean(0)
    expected = read_kernel(kernel).matrix(X, X)
    # Each frequency puts a covariance wrong by a standard deviation below the variance.
    error = float(expected.diagonal().max()) / (NUM_FEATURES * NUM_SETS) ** 0.5
    assert_close(average, expected, **sampling(error))


def test_outputs_mix_features_of_their_latent_functions(rng):
    kernel = CoregionalizationKernel(RBFKernel(), MaternKernel(0.5), num_outputs=3)
    kernel.mixing.data = torch.randn(3, 2, generator=rng)
    rows = output_rows(points(rng), range(3))
    average = torch.stack([drawn(kernel, rows, rng).matrix(rows, rows) for _ in range(NUM_SETS)]).mean(0)
    expected = read_kernel(kernel).matrix(rows, rows)
    error = float(expected.diagonal().max()) / (NUM_FEATURES * NUM_SETS) ** 0.5
    assert_close(average, expected, **sampling(error))


def test_variances_are_exact_however_far_the_inputs_are(rng):
    X = points(rng, offset=1e8)
    features = drawn(ScaleKernel(RBFKernel()), X, rng)
    expected = read_kernel(ScaleKernel(RBFKernel()).double()).diagonal(X)
    assert_close(features.diagonal(X), expected, **rounding(torch.float64))
    assert torch.equal(features.origin, X.amin(0))


def test_kernels_of_finite_rank_are_their_own_features(rng):
    function = read_kernel(LinearKernel())
    assert function.random_features(points(rng), NUM_FEATURES, torch.randn) is function


@pytest.mark.parametrize("kernel", [PeriodicKernel(), RBFKernel() * RBFKernel(), RBFKernel() + PeriodicKernel()])
def test_other_kernels_have_none(rng, kernel):
    assert drawn(kernel, points(rng), rng) is None
