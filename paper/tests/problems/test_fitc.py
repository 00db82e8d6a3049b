"""The FITC likelihood is that of a dense Gaussian, and a fit lowers it."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from paper.problems.fitc import fit_fitc, fitc_loss
from streamgp.testing.tolerances import tolerance


def made(rng, n=30, d=2):
    X = 5.0 + 2.0 * torch.rand(n, d, generator=rng, dtype=torch.float64)
    y = (2.0 * X).sin().sum(-1) + 0.1 * torch.randn(n, generator=rng, dtype=torch.float64)
    return X, y - y.mean()


def test_the_loss_is_that_of_a_dense_gaussian(rng):
    X, y = made(rng)
    Z = X[:7]
    logs = {
        "log_inverse_squares": torch.tensor([0.5, -0.3], dtype=torch.float64),
        "log_signal_variance": torch.tensor(0.2, dtype=torch.float64),
        "log_noise_variance": torch.tensor(-2.0, dtype=torch.float64),
    }

    def kernel(A, B):
        squares = ((A.unsqueeze(-2) - B).square() * logs["log_inverse_squares"].exp()).sum(-1)
        return math.exp(0.2) * (-0.5 * squares).exp()

    Kzz = kernel(Z, Z) + 1e-6 * math.exp(0.2) * torch.eye(7, dtype=torch.float64)
    Q = kernel(X, Z) @ torch.linalg.solve(Kzz, kernel(Z, X))
    S = Q + torch.diag(math.exp(0.2) - Q.diagonal() + math.exp(-2.0))
    expected = -MultivariateNormal(torch.zeros(30, dtype=torch.float64), 0.5 * (S + S.mT)).log_prob(y)
    assert_close(fitc_loss(X, y, Z, **logs), expected, **tolerance(torch.float64, scale=1e6))


@pytest.mark.slow
def test_a_fit_lowers_the_loss_and_keeps_to_its_evaluations(rng):
    X, y = made(rng, 60)
    short = fit_fitc(X, y, num_pseudo=8, num_evaluations=5)
    long = fit_fitc(X, y, num_pseudo=8, num_evaluations=80)
    assert long.loss < short.loss
    assert math.exp(long.log_noise_variance) < 0.1 * float(y.var())
    assert long.pseudo_inputs.shape == (8, 2)
