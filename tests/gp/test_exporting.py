import pytest
import torch
from gpytorch.kernels import RBFKernel
from gpytorch.models import ApproximateGP
from torch.testing import assert_close

import streamgp as sg
from streamgp.testing.conditioning_laws import BATCH_SHAPES, DTYPES, assert_same_prediction
from streamgp.testing.problems import random_observations, random_sparse_gp
from streamgp.testing.reference import predict_dense
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
