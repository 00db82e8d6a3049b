"""O-SVGP row by row, from a fitted GP."""

import pytest
import torch
from torch.testing import assert_close

from paper.baselines.osvgp_rows import MaternParameters, follow_rows
from streamgp.testing.tolerances import judgement
from streamgp.training import fit


def stream(num_rows, generator):
    X = torch.rand(num_rows, 2, generator=generator, dtype=torch.float64)
    return X, torch.sin(4.0 * X[:, 0]) + X[:, 1] + 2.0


@pytest.fixture(scope="module")
def first():
    generator = torch.Generator().manual_seed(0)
    X, y = stream(20, generator)
    result = fit(X, y, num_inducing=8, max_iterations=10)
    return result, generator


def test_the_kernel_is_that_of_gpytorch(first):
    result, generator = first
    kernel = result.gp.kernel
    lengthscale = kernel.base_kernel.lengthscale.detach().reshape(-1)
    A = torch.rand(3, 2, generator=generator, dtype=torch.float64)
    B = torch.cat([A[:1], torch.rand(2, 2, generator=generator, dtype=torch.float64)])
    parameters = MaternParameters(lengthscale.log(), kernel.outputscale.detach().log(), torch.zeros(()).double(), A)
    assert_close(parameters.kernel(A, B), kernel(A, B).to_dense().detach())


@pytest.mark.parametrize("beta", [1.0, 1e-3])
def test_a_step_is_small_and_starts_from_the_fit(first, beta):
    result, generator = first
    X, y = stream(2, generator)
    X_test, _ = stream(10, generator)
    noise = float(result.likelihood.gaussian_noise_variance)
    (mean,) = follow_rows(result.gp, noise, X[:1], y[:1], X_test=X_test, marks=[1], beta=beta)
    before = result.gp.predict(X_test).mean
    assert_close(mean, before, **judgement(absolute=0.1))
    assert not torch.equal(mean, before)


def test_without_divergences_a_row_is_followed(first):
    """The same row again and again: what is predicted there comes closer to its target."""
    result, generator = first
    X, _ = stream(1, generator)
    y = result.gp.predict(X).mean.detach() + 1.0
    noise = float(result.likelihood.gaussian_noise_variance)
    rows, targets = X.expand(30, -1), y.expand(30)
    *_, mean = follow_rows(result.gp, noise, rows, targets, X_test=X, marks=[30], beta=1e-6)
    assert float(mean) > float(y) - 0.99
