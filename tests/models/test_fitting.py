"""Models fitted to data, with transforms around them."""

import pytest
import torch
from botorch.models.transforms import Log, Normalize, Standardize
from tests.support.model_laws import uniform
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, ShapeError, StreamGPWarning, ValueRangeError
from streamgp.likelihoods import Bernoulli, Gaussian, Poisson

QUICK = {"num_inducing": 8, "max_iterations": 10}


def data(rng, n=30, dtype=torch.float64):
    X = (5.0 + 10.0 * uniform(rng, n, 2)).to(dtype)
    f = torch.sin(X).sum(-1, keepdim=True)
    return X, 100.0 + 20.0 * f


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_fit_predicts_in_the_units_of_the_data(rng, dtype):
    X, Y = data(rng, dtype=dtype)
    model = sg.OnlineGP.fit(X, Y, num_inducing=30)
    assert isinstance(model.input_transform, Normalize)
    assert isinstance(model.outcome_transform, Standardize)
    posterior = model.posterior(X)
    assert posterior.mean.dtype == dtype
    assert (posterior.mean - Y).square().mean().sqrt() < 0.3 * Y.std()
    assert len(model.fit_info) == 1
    after = model.condition_on_observations(X, Y)
    assert (after.posterior(X).variance <= posterior.variance + 1e-3).all()


@pytest.mark.slow
def test_only_gaussian_outputs_are_standardized(rng):
    X, Y = data(rng)
    counts, classes = (Y / 20).round().clamp_min(0), (Y > 100).double()
    model = sg.OnlineGP.fit(
        X, torch.cat([counts, Y, classes], dim=-1), likelihood=[Poisson(), None, Bernoulli()], **QUICK
    )
    assert model.num_outputs == 3
    assert [type(one) for one in model.likelihoods] == [Poisson, Gaussian, Bernoulli]
    assert_close(model.outcome_transform.stdvs[0, [0, 2]], torch.ones(2, dtype=torch.float64))
    rates = model.on_scale("response").posterior(X).mean[:, :1]
    assert (rates - counts).square().mean() < counts.var()


def test_known_noise_is_transformed_and_not_learned(rng):
    X, Y = data(rng)
    model = sg.OnlineGP.fit(X, Y, train_Yvar=torch.full_like(Y, 4.0), **QUICK)
    (likelihood,) = model.likelihoods
    assert_close(likelihood.noise_variance, torch.full_like(Y.squeeze(-1), 4.0) / Y.var())


def test_transforms_may_be_given_fitted_or_not(rng):
    X, Y = data(rng)
    model = sg.OnlineGP.fit(X, Y, input_transform=None, outcome_transform=Log(), **QUICK)
    assert "input_transform" not in model._modules
    assert (model.posterior(X).mean > 0).all()
    bounds = torch.tensor([[0.0, 0.0], [20.0, 20.0]], dtype=torch.float64)
    frozen = Standardize(1)
    frozen(Y[:5])
    model = sg.OnlineGP.fit(X, Y, input_transform=Normalize(2, bounds=bounds), outcome_transform=frozen.eval(), **QUICK)
    assert_close(model.outcome_transform.means, frozen.means)
    assert_close(model.input_transform(X), X / 20)


def test_a_fit_may_start_from_another(rng):
    X, Y = data(rng)
    first = sg.OnlineGP.fit(X[:20], Y[:20], **QUICK)
    second = sg.OnlineGP.fit(X, Y, start=first, **QUICK)
    assert_close(second.outcome_transform.means, first.outcome_transform.means)
    assert torch.isfinite(second.posterior(X).mean).all()
    with pytest.raises(OptionError, match="conditioned"):
        sg.OnlineGP.fit(X, Y, start=first.condition_on_observations(X, Y))


def test_bad_data_is_refused_with_a_sentence(rng):
    X, Y = data(rng)
    with pytest.raises(ShapeError, match="train_Y"):
        sg.OnlineGP.fit(X, Y.squeeze(-1))
    with pytest.raises(ValueRangeError, match="train_Y"):
        sg.OnlineGP.fit(X, 1e200 * Y)
    with pytest.raises(ShapeError, match="input"):
        sg.OnlineGP.fit(X, Y[:5])
    with pytest.raises(ShapeError, match="train_Yvar"):
        sg.OnlineGP.fit(X, Y, train_Yvar=Y[:3])
    with pytest.raises(OptionError, match="Gaussian"):
        sg.OnlineGP.fit(X, Y.round(), likelihood=Poisson(), train_Yvar=Y)
    with pytest.raises(OptionError, match="input_transform"):
        sg.OnlineGP.fit(X, Y, input_transform="unit")


@pytest.mark.parametrize("standardize", [True, "inputs"])
def test_units_come_from_transforms_and_not_from_options_of_fit(standardize):
    X = 1e4 * torch.rand(12, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with pytest.raises(OptionError, match="input_transform"):
        sg.OnlineGP.fit(X, X[:, :1], input_transform=None, standardize=standardize)
    with pytest.warns(StreamGPWarning, match="input_transform"):
        sg.OnlineGP.fit(X, X[:, :1], input_transform=None, max_iterations=2)
