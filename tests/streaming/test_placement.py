import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel

from streamgp.streaming.bank import Bank
from streamgp.streaming.experts import Expert, Experts
from streamgp.streaming.placement import place_points
from streamgp.streaming.settings import Room


def _kernel(lengthscale):
    kernel = ScaleKernel(MaternKernel(2.5)).double().requires_grad_(False)
    kernel.base_kernel.lengthscale = lengthscale
    return kernel


def _is_among(points, inputs):
    return (points[:, None] == inputs[None]).all(-1).any(-1)


def test_where_points_suffice_they_are_inputs_that_leave_little_open(rng):
    X, kernel = torch.rand(200, 1, generator=rng, dtype=torch.float64), _kernel(0.5)
    Z, is_enough = place_points(kernel, X, None, Room(20, 20, 20), 0.1, seed=0)
    assert is_enough
    assert bool(_is_among(Z, X).all())
    K = kernel(Z).to_dense() + 1e-9 * torch.eye(len(Z), dtype=X.dtype)
    C = kernel(X, Z).to_dense()
    left = kernel(X, diag=True) - (C * torch.linalg.solve(K, C.mT).mT).sum(-1)
    assert float(left.mean()) < 0.05 * 0.1


def test_where_they_do_not_a_half_is_placed_among_the_latest_inputs(rng):
    X = torch.linspace(0.0, 100.0, 1000, dtype=torch.float64)[:, None]
    Z, is_enough = place_points(_kernel(0.1), X, None, Room(20, 20, 20), 0.1, seed=0)
    assert not is_enough
    assert Z.shape == (20, 1)
    assert int((X[-60] < Z).sum()) >= 10


def test_what_was_believed_before_the_inputs_keeps_points(rng):
    kernel = _kernel(0.1)
    before = torch.linspace(-100.0, -50.0, 20, dtype=torch.float64)[:, None]
    constant = torch.zeros(1, dtype=torch.float64)
    anchor = Bank.from_prior(Experts((Expert(),)), kernel, before, constant=constant, level_noise=0.1)
    X = torch.linspace(0.0, 100.0, 1000, dtype=torch.float64)[:, None]
    Z, _ = place_points(kernel, X, anchor, Room(20, 20, 20), 0.1, seed=0)
    assert int(_is_among(Z, before).sum()) == 5


@pytest.mark.parametrize(("lengthscale", "most"), [(5.0, 16), (0.02, 64)])
def test_a_number_that_is_to_be_found_grows_with_what_is_left_open(rng, lengthscale, most):
    X = torch.rand(200, 1, generator=rng, dtype=torch.float64)
    assert len(place_points(_kernel(lengthscale), X, None, Room(16, 64, 64), 0.1, seed=0).points) == most


def test_points_that_were_learned_stay_where_they_do_not_suffice(rng):
    X = torch.linspace(0.0, 100.0, 1000, dtype=torch.float64)[:, None]
    learned = 100.0 * torch.rand(15, 1, generator=rng, dtype=torch.float64)
    Z, is_enough = place_points(_kernel(0.1), X, None, Room(20, 20, 20), 0.1, seed=0, current=learned)
    assert not is_enough
    assert torch.equal(Z[:15], learned)
    assert bool(_is_among(Z[15:], X).all())
    Z, is_enough = place_points(_kernel(500.0), X, None, Room(20, 20, 20), 0.1, seed=0, current=learned)
    assert is_enough
    assert bool(_is_among(Z, X).all())
