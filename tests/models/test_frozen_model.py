import pytest
import torch
from botorch.models.transforms import Normalize
from tests.support.problems import random_sparse_gp

import streamgp as sg
from streamgp.errors import UnsupportedError
from streamgp.likelihoods import Gaussian, Poisson
from streamgp.models.frozen_model import AbstractFrozenModel


@pytest.fixture
def model(rng):
    transform = Normalize(2, bounds=torch.tensor([[0.0, 0.0], [2.0, 4.0]], dtype=torch.float64))
    gps = [random_sparse_gp(rng).gp for _ in range(2)]
    return sg.OnlineGP(gps, [Gaussian(0.1), Poisson()], input_transform=transform)


def test_a_model_stays_what_it_is(model):
    assert isinstance(model, AbstractFrozenModel)
    assert model.train() is model
    assert model.eval() is model
    assert not model.training
    assert model.to(torch.float64) is model
    with pytest.raises(UnsupportedError, match="frozen"):
        model.to(torch.float32)


def test_inputs_are_transformed_once(model):
    X = torch.ones(1, 2, dtype=torch.float64)
    assert model.transform_inputs(X).tolist() == [[0.5, 0.25]]
    expected = model.gps[0].predict(model.transform_inputs(X)).mean
    assert torch.equal(model.posterior(X).mean[..., 0], expected)


def test_a_subset_has_its_gps_and_likelihoods_and_keeps_the_transform(model):
    one = model.subset_output([-1])
    assert one.gps == model.gps[1:]
    assert one.likelihoods == model.likelihoods[1:]
    assert one.input_transform is model.input_transform


def test_another_scale_is_another_model(model):
    assert model.on_scale("response").scale == "response"
    assert model.scale == "latent"
