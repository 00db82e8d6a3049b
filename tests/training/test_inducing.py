import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from scipy.cluster.vq import kmeans2

from streamgp.training import inducing
from streamgp.training.inducing import extend_points, kmeans_points, pivoted_points


def kernel(lengthscale=0.3):
    made = ScaleKernel(MaternKernel(2.5)).double()
    made.base_kernel.lengthscale = lengthscale
    return made


def is_among(points, inputs):
    return (points.unsqueeze(-2) == inputs).all(-1).any(-1).all()


def residual(points, X):
    K = kernel()(points).to_dense()
    cross = kernel()(points, X).to_dense()
    return (kernel()(X).to_dense().diagonal() - (cross * torch.linalg.solve(K, cross)).sum(0)).max()


def test_pivoted_points_are_inputs_and_leave_no_input_far_from_explained(rng):
    X = torch.rand(60, 2, generator=rng, dtype=torch.float64)
    Z = pivoted_points(kernel(), X, 10, generator=rng)
    assert Z.shape == (10, 2)
    assert is_among(Z, X)
    assert residual(Z, X) < residual(X[:10], X)


def test_copies_are_chosen_once(rng):
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64).repeat(5, 1)
    assert len(pivoted_points(kernel(), X, 10, generator=rng)) == 4
    assert len(kmeans_points(kernel(), X, 10, generator=rng)) == 4


def test_points_are_added_behind_those_that_stay(rng):
    X = torch.rand(60, 2, generator=rng, dtype=torch.float64)
    old = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    Z = extend_points(kernel(), old, X, 12, generator=rng)
    assert torch.equal(Z[:5], old)
    assert is_among(Z[5:], X)
    assert len(Z) == 12
    assert extend_points(kernel(), old, X, 3, generator=rng) is old


def test_centers_are_reproducible_and_near_the_clusters(rng):
    centers = torch.tensor([[0.0, 0.0], [5.0, 5.0], [0.0, 5.0]], dtype=torch.float64)
    X = (centers.unsqueeze(1) + 0.1 * torch.randn(3, 40, 2, generator=rng, dtype=torch.float64)).flatten(0, 1)
    found = kmeans_points(kernel(), X, 3, generator=torch.Generator().manual_seed(1))
    again = kmeans_points(kernel(), X, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(found, again)
    assert torch.cdist(centers, found).min(-1).values.max() < 0.1


def test_candidates_are_drawn_from_many_inputs(rng, monkeypatch):
    monkeypatch.setattr(inducing, "_MOST_CANDIDATES", 30)
    X = torch.rand(100, 2, generator=rng, dtype=torch.float64)
    weights = torch.ones(100, dtype=torch.float64)
    assert is_among(pivoted_points(kernel(), X, 8, weights=weights, generator=rng), X)
    assert extend_points(kernel(), X[:2], X, 8, generator=rng).shape == (8, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centers_are_those_of_scipy_from_the_same_random_numbers(dtype):
    points = np.random.default_rng(1).normal(size=(300, 3)).astype(dtype)
    starts = inducing._spread_starts(points, 20, np.random.default_rng(7))
    assert len(np.unique(starts, axis=0)) == 20
    centers, labels = kmeans2(points, starts, minit="matrix", iter=5)
    expected, expected_labels = kmeans2(points, 20, minit="++", seed=np.random.default_rng(7), iter=5)
    assert np.array_equal(centers, expected)
    assert np.array_equal(labels, expected_labels)
