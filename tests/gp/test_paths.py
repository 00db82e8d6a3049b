import numpy as np
import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from tests.support.conditioning_laws import BATCH_SHAPES
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError
from streamgp.testing.tolerances import approximation, sampling

KERNELS = {
    "rbf": RBFKernel,
    "matern 1/2": lambda **options: MaternKernel(0.5, **options),
    "matern 3/2": lambda **options: MaternKernel(1.5, **options),
    "matern 5/2": MaternKernel,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "batch_shape"),
    [
        ("matern 5/2", ()),
        ("rbf", (2, 1)),
        *(pytest.param(name, (), marks=pytest.mark.thorough) for name in KERNELS if name != "matern 5/2"),
        pytest.param("rbf", (3,), marks=pytest.mark.thorough),
    ],
)
def test_paths_have_the_predicted_moments(rng, name, batch_shape):
    gp = random_sparse_gp(rng, batch_shape=batch_shape, base=KERNELS[name]).gp
    W = torch.rand(*batch_shape, 4, 2, generator=rng, dtype=torch.float64)
    s, features = (2000, 2048) if batch_shape else (4000, 4096)
    values = gp.sample_paths(s, generator=rng, num_features=features)(W)
    prediction = gp.predict(W)
    assert values.shape == (s, *batch_shape, 4)
    assert ((values.mean(0) - prediction.mean).abs() < 5 * (prediction.variance / s).sqrt() + 0.01).all()
    centered = (values - prediction.mean).movedim(0, -1)
    # Random features err by one over the root of their number, Monte Carlo by one over the root of the samples.
    bound = 5 * gp.kernel.outputscale[..., None, None] * ((2 / s) ** 0.5 + (1 / features) ** 0.5)
    assert ((centered @ centered.mT / s - prediction.covariance).abs() < bound).all()


def test_paths_agree_with_their_belief_at_the_inducing_points(rng):
    problem = random_sparse_gp(rng)
    narrow = problem.gp.process.with_belief(problem.whitened_mean, torch.zeros_like(problem.whitened_root))
    values = sg.SparseGP(narrow).sample_paths(5, generator=rng, num_features=64)(problem.inducing_points)
    expected = sg.SparseGP(narrow).predict(problem.inducing_points).mean.expand(5, -1)
    # A path differs by the jitter of the inducing points times the weights that make it hit their values.
    K = problem.gp.kernel(problem.inducing_points).to_dense()
    limits = approximation(problem.jitter * float(torch.linalg.inv(K.detach()).abs().sum(-1).max()) * 4.0, "jitter")
    assert_close(values, expected, **limits)


@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_each_path_is_a_draw_of_its_own(rng, batch_shape):
    gp = random_sparse_gp(rng, batch_shape=batch_shape).gp
    # Far from the inducing points a path is a draw of the prior, of as many features as it may be.
    W = 40.0 + torch.rand(*batch_shape, 3, 2, generator=rng, dtype=torch.float64)
    s = 500
    values = gp.sample_paths(s, generator=rng, num_features=50)(W)
    variance = gp.kernel.outputscale.unsqueeze(-1).expand(*batch_shape, 3)
    assert_close(values.mean(0), gp.predict(W).mean, **sampling((variance.max().item() / s) ** 0.5))
    assert_close(values.var(0), variance, **sampling(variance.max().item() * (2.0 / s) ** 0.5))


def test_paths_of_weights_of_features_have_the_exact_moments(rng):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    gp, _ = sg.SparseGP.from_features(ScaleKernel(LinearKernel()), X).absorb(X, X[:, 0].sin(), noise_variance=0.1)
    s, W = 2000, torch.rand(3, 2, generator=rng, dtype=torch.float64)
    values, prediction = gp.sample_paths(s, generator=rng)(W), gp.predict(W)
    deviation = float(prediction.variance.max().sqrt())
    assert_close(values.mean(0), prediction.mean, **sampling(deviation / s**0.5))
    assert_close(values.T.cov(), prediction.covariance, **sampling(deviation**2 * (2 / s) ** 0.5))


def test_a_path_is_one_function_wherever_it_is_evaluated(rng):
    gp = random_sparse_gp(rng).gp
    paths = gp.sample_paths(3, generator=rng)
    X = torch.rand(4, 5, 2, generator=rng, dtype=torch.float64)
    assert_close(paths(X)[:, 2], paths(X[2]))
    assert_close(paths(X.reshape(20, 2)).reshape(3, 4, 5), paths(X))


@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_paths_are_differentiable_in_their_inputs(rng, batch_shape):
    gp = random_sparse_gp(rng, batch_shape=batch_shape).gp
    paths = gp.sample_paths(2, generator=rng, num_features=16)
    X = torch.rand(*batch_shape, 3, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(paths, [X])


def test_a_path_at_an_array_is_an_array(rng):
    paths, W = random_sparse_gp(rng).gp.sample_paths(3, generator=rng), torch.rand(5, 2, dtype=torch.float64)
    assert isinstance(paths(W.numpy()), np.ndarray)
    np.testing.assert_array_equal(paths(W.numpy()), paths(W).detach().numpy())


def test_paths_repeat_with_their_seed(rng):
    gp = random_sparse_gp(rng).gp
    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    first, second = (gp.sample_paths(2, generator=torch.Generator().manual_seed(0))(X) for _ in range(2))
    assert torch.equal(first, second)


def test_kernels_without_known_frequencies_are_refused_with_a_remedy():
    gp = sg.SparseGP.from_prior(PeriodicKernel(), torch.rand(4, 2))
    with pytest.raises(UnsupportedError, match=r"The kernel is a PeriodicKernel\. Use sample"):
        gp.sample_paths(1)
    gp = sg.MultiOutputGP.from_prior(ScaleKernel(PeriodicKernel()), torch.rand(4, 2), mixing=[[1.0], [2.0]])
    with pytest.raises(
        UnsupportedError, match=r"The kernel is a CoregionalizationKernel of PeriodicKernel\. Use sample"
    ):
        gp.sample_paths(1)


def test_sums_have_paths_with_the_predicted_moments(rng):
    kernel = ScaleKernel(RBFKernel(active_dims=[0])) + LinearKernel()
    X, W = (torch.rand(k, 2, generator=rng, dtype=torch.float64) for k in (6, 3))
    gp, _ = sg.SparseGP.from_prior(kernel, X).absorb(X, X[:, 0].sin(), noise_variance=0.1, inducing="keep")
    s, features = 4000, 1024
    values, prediction = gp.sample_paths(s, generator=rng, num_features=features)(W), gp.predict(W)
    largest = float(gp.process.prior_variance(W).max())
    assert_close(values.mean(0), prediction.mean, **sampling((largest / s) ** 0.5))
    error = largest * ((2 / s) ** 0.5 + (1 / features) ** 0.5)
    assert_close(values.T.cov(), prediction.covariance, **sampling(error))
