import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from tests.support.reference import exact_gp
from torch.testing import assert_close

from paper.baselines.exact_gp import ExactGP, fit_exact
from streamgp.testing.tolerances import tolerance


@pytest.fixture
def data(rng):
    X = torch.rand(9, 2, generator=rng, dtype=torch.float64)
    return X, torch.sin(3.0 * X[:, 0]) + X[:, 1], torch.rand(4, 2, generator=rng, dtype=torch.float64)


def test_predictions_are_those_of_the_dense_reference(data):
    X, y, W = data
    kernel, mean = ScaleKernel(RBFKernel()).double(), ConstantMean().double()
    mean.initialize(constant=0.3)
    found = ExactGP(kernel, mean, X[:5], y[:5], 0.05).condition(X[5:], y[5:]).predict(W)
    expected = exact_gp(kernel, mean, X, y, 0.05 * torch.eye(9, dtype=torch.float64), W)
    assert_close(found.mean, expected.mean, **tolerance(torch.float64))
    assert_close(found.covariance, expected.covariance, **tolerance(torch.float64))


def test_the_fit_ends_where_the_marginal_likelihood_is_flat(data):
    X, y, _ = data
    gp = fit_exact(X, y, ScaleKernel(RBFKernel()).double(), mean=ConstantMean().double(), noise_variance=0.05)
    values = [*gp.kernel.parameters(), *gp.mean.parameters()]
    covariance = gp.kernel(X, X).to_dense() + 0.05 * torch.eye(9, dtype=torch.float64)
    density = torch.distributions.MultivariateNormal(gp.mean(X), covariance).log_prob(y)
    for gradient in torch.autograd.grad(density, values):
        assert gradient.abs().max() < 1e-2
