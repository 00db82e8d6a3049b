"""Functions drawn from a model through BoTorch."""

import pytest
import torch
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.models import ModelListGP
from botorch.models.transforms import Normalize, Standardize
from botorch.sampling.pathwise import draw_matheron_paths, get_matheron_path_model
from tests.support.model_laws import uniform
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError
from streamgp.likelihoods import Gaussian
from streamgp.testing.tolerances import judgement


def transformed(rng, o):
    out = Standardize(o)
    out(5.0 + 3.0 * uniform(rng, 6, o))
    into = Normalize(2, bounds=torch.tensor([[-1.0, 0.0], [2.0, 3.0]], dtype=torch.float64))
    gps = [random_sparse_gp(rng).gp for _ in range(o)]
    return sg.OnlineGP(gps, Gaussian(0.1), input_transform=into, outcome_transform=out)


@pytest.mark.parametrize("o", [1, 2])
def test_their_moments_are_those_of_the_posterior(rng, o):
    model, X = transformed(rng, o), uniform(rng, 4, 2)
    torch.manual_seed(0)
    values = get_matheron_path_model(model, torch.Size([4000]))(X)
    posterior = model.posterior(X)
    assert values.shape == (4000, 4, o)
    assert ((values.mean(0) - posterior.mean).abs() < 5 * (posterior.variance / 4000).sqrt()).all()
    # Besides five standard errors, 1024 features approximate the prior.
    assert_close(values.var(0), posterior.variance, **judgement(relative=0.2, absolute=0.02))


def test_each_function_is_evaluated_at_its_own_inputs(rng):
    model, X = transformed(rng, 1), uniform(rng, 5, 3, 4, 2)
    paths = draw_matheron_paths(model, sample_shape=torch.Size([3]))
    values = paths(X)
    assert values.shape == (5, 3, 4)
    for s in range(3):
        assert_close(values[:, s], paths(X[:, s : s + 1].expand(5, 3, 4, 2))[:, s])
    assert draw_matheron_paths(model, sample_shape=torch.Size())(X[0, 0]).shape == (4,)


def test_thompson_sampling_works_in_lists_and_natively(rng):
    model = transformed(rng, 1)
    X = uniform(rng, 2, 3, 2).requires_grad_(True)
    value = PathwiseThompsonSampling(model)(X)
    value.sum().backward()
    assert value.shape == (2,)
    assert torch.isfinite(X.grad).all()
    assert get_matheron_path_model(ModelListGP(model, model))(X).shape == (2, 3, 2)


def test_conditioned_models_have_no_paths(rng):
    model = transformed(rng, 1)
    X = uniform(rng, 3, 2)
    with pytest.raises(UnsupportedError, match="conditioned"):
        draw_matheron_paths(model.condition_on_observations(X, X[:, :1]), sample_shape=torch.Size([2]))
