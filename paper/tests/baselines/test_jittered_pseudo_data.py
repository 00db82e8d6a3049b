import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch.testing import assert_close

from paper.baselines.jittered_pseudo_data import jittered_pseudo_data, predict_through_pseudo_data
from streamgp.conditioning import SparseGP
from streamgp.testing.tolerances import approximation, tolerance


@pytest.fixture
def gp():
    X = torch.linspace(-3.0, 3.0, 24, dtype=torch.float64).unsqueeze(-1)
    points = torch.linspace(-3.0, 3.0, 6, dtype=torch.float64).unsqueeze(-1)
    prior = SparseGP.from_prior(ScaleKernel(RBFKernel()), points)
    return prior.absorb(X, torch.sin(2.0 * X).squeeze(-1), noise_variance=0.05, inducing="keep")[0]


NEW = torch.tensor([[3.5], [4.0]], dtype=torch.float64)
GRID = torch.linspace(-3.0, 4.0, 9, dtype=torch.float64).unsqueeze(-1)


def test_without_jitter_it_is_conditioning(gp):
    y = torch.tensor([0.5, -0.5], dtype=torch.float64)
    found = predict_through_pseudo_data(gp, NEW, y, noise_variance=0.1, at=GRID, jitter=0.0)
    expected = gp.condition(NEW, y, noise_variance=0.1).predict(GRID)
    assert_close(found.mean, expected.mean, **approximation(1e-5, "jitter"))
    assert_close(found.covariance, expected.covariance, **approximation(1e-5, "jitter"))


def test_with_the_jitter_of_the_papers_code_predictions_move_before_any_new_data(gp):
    found = predict_through_pseudo_data(gp, NEW[:0], NEW[:0, 0], noise_variance=0.1, at=GRID)
    assert (found.mean - gp.predict(GRID).mean).abs().max() > 1e-4


def test_without_jitter_the_noise_is_the_inverse_of_the_pseudo_precision(gp):
    noise, precision = jittered_pseudo_data(gp, 0.0).noise_covariance, gp.pseudo_data().precision
    # Relative to what is multiplied, which cancels.
    scale = float(precision.abs().max() * noise.abs().max())
    assert_close(precision @ noise, torch.eye(6, dtype=torch.float64), **tolerance(torch.float64, scale=scale))
