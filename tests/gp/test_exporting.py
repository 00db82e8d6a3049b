import gpytorch
import pytest
import torch
from gpytorch.distributions import MultitaskMultivariateNormal
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.models import ApproximateGP
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES, assert_same_prediction
from tests.support.problems import random_observations, random_sparse_gp
from tests.support.reference import predict_dense
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError
from streamgp.testing.tolerances import tolerance


def inputs(rng, batch_shape=(), dtype=torch.float64):
    return torch.rand(*batch_shape, 5, 2, generator=rng, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@pytest.mark.parametrize("width", [0.9, 1.3])
def test_a_round_trip_predicts_the_same(rng, batch_shape, width):
    gp = random_sparse_gp(rng, batch_shape=batch_shape, width=width).gp
    again = sg.from_gpytorch(gp.to_gpytorch())
    W = inputs(rng, batch_shape)
    assert_same_prediction(again, gp, W, like=predict_dense(gp, W))
    assert again.process.jitter == gp.process.jitter


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_model_predicts_what_the_gp_predicts(rng, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    model, W = gp.to_gpytorch(), inputs(rng, dtype=dtype)
    assert isinstance(model, ApproximateGP)
    with torch.no_grad():
        prediction = model(W)
    assert prediction.mean.dtype == dtype
    assert_close(prediction.mean, gp.predict(W).mean, **tolerance(dtype))
    # GPyTorch's whitened strategy adds its jitter to the predictive variances, too.
    assert_close(prediction.variance - gp.process.jitter, gp.predict(W).variance, **tolerance(dtype))


def test_a_gp_that_has_absorbed_data_comes_back_too(rng):
    gp = random_sparse_gp(rng, base=RBFKernel).gp
    new = random_observations(rng, num_observations=9)
    gp, _ = gp.absorb(new.inputs, new.targets, noise_variance=new.noise_variance)
    again, W = sg.from_gpytorch(gp.to_gpytorch()), inputs(rng)
    assert_same_prediction(again, gp, W, like=predict_dense(gp, W, is_derived=True))


def test_the_model_can_be_trained_without_touching_the_gp(rng):
    gp = random_sparse_gp(rng).gp
    W = inputs(rng)
    before = gp.predict(W).covariance.clone()
    model = gp.to_gpytorch().train()
    assert all(parameter.requires_grad for parameter in model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(W).variance.sum().backward()
    optimizer.step()
    assert torch.equal(gp.predict(W).covariance, before)
    assert not torch.equal(sg.from_gpytorch(model).predict(W).covariance, before)


MIXINGS = {
    "lmc": ([ScaleKernel(MaternKernel()), RBFKernel()], [[1.0, 0.2], [-0.5, 0.8], [0.3, 1.1]]),
    "icm": (ScaleKernel(MaternKernel()), [[1.0, 0.2], [-0.5, 0.8], [0.3, 1.1]]),
    "independent": (
        [RBFKernel(), MaternKernel(1.5), MaternKernel()],
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ),
}


def several_outputs(rng, kind, dtype=torch.float64, inducing="pivoted"):
    kernels, mixing = MIXINGS[kind]
    gp = sg.MultiOutputGP.from_prior(kernels, inputs(rng, dtype=dtype), mixing=mixing, mean=[1.0, -2.0, 0.5])
    Y = torch.randn(5, 3, generator=rng, dtype=torch.float64).to(dtype)
    return gp.absorb(inputs(rng, dtype=dtype), Y, noise_variance=0.1, inducing=inducing)[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inducing", ["pivoted", "keep"])
@pytest.mark.parametrize("kind", MIXINGS)
def test_a_model_of_several_outputs_predicts_what_the_gp_predicts_and_comes_back(rng, kind, inducing, dtype):
    gp, W = several_outputs(rng, kind, dtype, inducing), inputs(rng, dtype=dtype)
    model, expected = gp.to_gpytorch(), gp.predict(W)
    with torch.no_grad():
        prediction = model(W)
        one = model(W, task_indices=torch.tensor([0, 1, 2, 1, 0]))
    assert isinstance(prediction, MultitaskMultivariateNormal)
    limits = tolerance(dtype, scale=3.0)
    assert_close(prediction.mean, expected.mean, **limits)
    # GPyTorch's whitened strategy adds its jitter to the predictive variances, too.
    jitter = gp.sparse_gp.process.jitter * torch.eye(15, dtype=dtype)
    assert_close(prediction.covariance_matrix - jitter, expected.covariance, **limits)
    assert_close(one.mean, expected.mean[torch.arange(5), [0, 1, 2, 1, 0]], **limits)
    again = sg.from_gpytorch(model)
    assert isinstance(again, sg.MultiOutputGP)
    assert again.sparse_gp.process.jitter == gp.sparse_gp.process.jitter
    assert_close(again.predict(W).mean, expected.mean, **limits)
    assert_close(again.predict(W).covariance, expected.covariance, **limits)


def test_a_model_of_several_outputs_can_be_trained_by_gpytorch(rng):
    gp, X = several_outputs(rng, "lmc"), inputs(rng)
    Y = torch.randn(5, 3, generator=rng, dtype=torch.float64)
    before, model = gp.predict(X).covariance.clone(), gp.to_gpytorch().train()
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(3).double()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    values = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = -bound(model(X), Y)
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    assert values[-1] < values[0]
    assert torch.equal(gp.predict(X).covariance, before)
    trained = sg.from_gpytorch(model.eval())
    with torch.no_grad():
        assert_close(trained.predict(X).mean, model(X).mean, **tolerance(torch.float64, scale=3.0))


def test_weights_of_features_of_several_outputs_are_carried_to_points_first(rng):
    X, W = inputs(rng), inputs(rng)
    Y = torch.randn(5, 2, generator=rng, dtype=torch.float64)
    gp = sg.MultiOutputGP.from_features(gpytorch.kernels.LinearKernel(), X, mixing=[[1.0], [-2.0]])
    gp, _ = gp.absorb(X, Y, noise_variance=0.1)
    with pytest.raises(UnsupportedError, match="Carry it to points first"):
        gp.to_gpytorch()
    carried, _ = gp.absorb(X[:0], Y[:0], noise_variance=1.0, inducing=X[:2])
    with torch.no_grad():
        prediction = carried.to_gpytorch()(W)
    assert_close(prediction.mean, gp.predict(W).mean, **tolerance(torch.float64, scale=3.0))
