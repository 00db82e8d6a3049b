"""Functions drawn from a GP of several outputs: its moments, and one function wherever it is evaluated."""

import numpy as np
import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from tests.support.conditioning_laws import DTYPES
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, ShapeError, ValueRangeError
from streamgp.testing.tolerances import rounding, sampling

MIXING = [[1.0, 0.2], [-0.5, 0.8], [0.3, 1.1]]
KERNELS = {"lmc": [ScaleKernel(MaternKernel()), RBFKernel()], "icm": ScaleKernel(MaternKernel())}


def uniform(rng, *shape, dtype=torch.float64):
    return torch.rand(*shape, generator=rng, dtype=torch.float64).to(dtype)


def learned(rng, kind="lmc", *, dtype=torch.float64, batch_shape=()):
    gp = sg.MultiOutputGP.from_prior(
        KERNELS[kind], uniform(rng, *batch_shape, 6, 2, dtype=dtype), mixing=MIXING, mean=[1.0, 0.0, -2.0]
    )
    Y = torch.randn(8, 3, generator=rng, dtype=torch.float64).to(dtype)
    return gp.absorb(uniform(rng, 8, 2, dtype=dtype), Y, noise_variance=0.1)[0]


@pytest.mark.parametrize(
    ("kind", "batch_shape"), [("lmc", ()), ("icm", ()), pytest.param("lmc", (2, 1), marks=pytest.mark.thorough)]
)
def test_paths_have_the_predicted_moments(rng, kind, batch_shape):
    gp, W = learned(rng, kind, batch_shape=batch_shape), uniform(rng, 2, 2)
    s, features = 4000, 1024
    values, prediction = gp.sample_paths(s, generator=rng, num_features=features)(W), gp.predict(W)
    assert values.shape == (s, *batch_shape, 2, 3)
    largest = float(gp.sparse_gp.process.prior_variance(prediction.rows.inputs).max())
    assert_close(values.mean(0), prediction.mean, **sampling((largest / s) ** 0.5))
    centered = (values - prediction.mean).flatten(-2).movedim(0, -1)
    # Random features err by one over the root of their number, Monte Carlo by one over the root of the samples.
    error = largest * ((2 / s) ** 0.5 + (1 / features) ** 0.5)
    assert_close(centered @ centered.mT / s, prediction.covariance, **sampling(error))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_path_is_one_function_wherever_and_for_whichever_output_it_is_evaluated(rng, dtype):
    gp, X = learned(rng, dtype=dtype), uniform(rng, 4, 5, 2, dtype=dtype)
    paths = gp.sample_paths(3, generator=torch.Generator().manual_seed(0))
    # Features and their weights are summed in an order that depends on the number of rows.
    limits = rounding(dtype, condition=10.0, scale=100.0)
    assert paths(X).dtype == dtype
    assert torch.equal(paths(X), paths(X))
    assert_close(paths(X)[:, 2], paths(X[2]), **limits)
    some = gp.sample_paths(3, output=[2, -3], generator=torch.Generator().manual_seed(0))
    assert_close(some(X), paths(X)[..., [2, 0]], **limits)
    one = gp.sample_paths(3, output=1, generator=torch.Generator().manual_seed(0))
    assert_close(one(X), paths(X)[..., 1:2], **limits)


def test_paths_of_outputs_that_share_their_only_latent_function_move_together(rng):
    gp = sg.MultiOutputGP.from_prior(RBFKernel(), uniform(rng, 5, 2), mixing=[[1.0], [-2.0]], mean=[0.0, 3.0])
    values = gp.sample_paths(4, generator=rng)(uniform(rng, 6, 2))
    assert_close(values[..., 1], 3.0 - 2.0 * values[..., 0], **rounding(torch.float64, condition=10.0, scale=100.0))


def test_paths_are_differentiable_in_their_inputs(rng):
    paths = learned(rng).sample_paths(2, generator=rng, num_features=16)
    assert torch.autograd.gradcheck(paths, [uniform(rng, 3, 2).requires_grad_(True)])


def test_a_path_at_an_array_is_an_array(rng):
    paths, W = learned(rng).sample_paths(3, generator=rng), uniform(rng, 5, 2)
    assert isinstance(paths(W.numpy()), np.ndarray)
    np.testing.assert_array_equal(paths(W.numpy()), paths(W).detach().numpy())


def test_paths_of_features_are_exact(rng):
    X, W = uniform(rng, 5, 2), uniform(rng, 3, 2)
    gp = sg.MultiOutputGP.from_features(LinearKernel(), X, mixing=MIXING)
    gp, _ = gp.absorb(X, torch.randn(5, 3, generator=rng, dtype=torch.float64), noise_variance=0.1)
    values, s = gp.sample_paths(4000, generator=rng)(W), 4000
    largest = float(gp.predict(W).variance.max())
    assert_close(values.mean(0), gp.predict(W).mean, **sampling((largest / s) ** 0.5))
    assert_close(values.flatten(1).T.cov(), gp.predict(W).covariance, **sampling(largest * (2 / s) ** 0.5))


def test_bad_arguments_get_a_sentence(rng):
    gp = learned(rng)
    with pytest.raises(OptionError, match="output must be whole numbers from -3 to 2"):
        gp.sample_paths(1, output=3)
    with pytest.raises(ValueRangeError, match="num_samples must be a whole number of at least 1"):
        gp.sample_paths(0)
    with pytest.raises(ShapeError, match="X must have 2 columns"):
        gp.sample_paths(1)(torch.rand(3, 3, dtype=torch.float64))
