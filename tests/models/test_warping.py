"""Transforms with parameters are learned together with hyperparameters."""

import pytest
import torch
from botorch.models.transforms import ChainedInputTransform, Normalize
from botorch.models.transforms.input import Warp
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean, LinearMean
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError
from streamgp.likelihoods import Gaussian
from streamgp.models.warping import WarpedKernel, learned_names
from streamgp.testing.tolerances import tolerance
from streamgp.training.collapsed import collapsed_bound
from streamgp.training.features import Observed
from streamgp.training.parameters import Hyperparameters, hyperparameter_space

BOUNDS = torch.tensor([[10.0, 0.0], [30.0, 1.0]], dtype=torch.float64)


def wave(X):
    """Slow near the lower end of the first input, fast near the upper, which a warp evens out."""
    unit = (X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    return torch.sin(16.0 * unit[:, :1] ** 4) + 0.2 * unit[:, 1:]


def make_data(seed):
    rng = torch.Generator().manual_seed(seed)
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * torch.rand(160, 2, generator=rng, dtype=torch.float64)
    return X[:60], wave(X[:60]) + 0.05 * torch.randn(60, 1, generator=rng, dtype=torch.float64), X[60:], wave(X[60:])


def fit_warped(X, Y):
    return sg.OnlineGP.fit(X, Y, num_inducing=20, input_transform=Warp(2, [0], bounds=BOUNDS), max_iterations=40)


@pytest.fixture(scope="module")
def data():
    return make_data(0)


@pytest.fixture(scope="module")
def model(data):
    return fit_warped(*data[:2])


def error(model, X, y):
    return float((model.posterior(X).mean - y).square().mean().sqrt())


@pytest.mark.slow
def test_a_learned_warp_fits_warped_functions_better(model):
    ratios = []
    for seed in range(4):  # which optimum a fit finds is chance
        each = make_data(seed)
        plain = sg.OnlineGP.fit(*each[:2], num_inducing=20, max_iterations=40)
        ratios.append(error(fit_warped(*each[:2]), *each[2:]) / error(plain, *each[2:]))
    assert max(ratios) < 1.0
    assert sum(ratios) / 4 < 0.85
    warp = model.input_transform
    assert 2.0 < float(warp.concentration1) < 8.0  # the exponent of the inner power, 4 in the function
    assert not any(parameter.requires_grad for parameter in warp.parameters())


def test_what_is_given_stays_as_it_is(data):
    warp = Warp(2, [0])
    before = {name: value.clone() for name, value in warp.state_dict().items()}
    assert learned_names(warp) == ["concentration0", "concentration1"]
    assert learned_names(Warp(2, [0]).eval()) == learned_names(Normalize(2)) == []
    sg.OnlineGP.fit(data[0][:12], data[1][:12], num_inducing=5, input_transform=warp, max_iterations=2)
    assert all(torch.equal(value, before[name]) for name, value in warp.state_dict().items())
    assert "concentration0_prior" not in warp._priors


@pytest.mark.slow
def test_the_model_predicts_as_the_fit_did_and_goes_on(data, model, tmp_path):
    W = data[2]
    model.save(tmp_path / "model")
    loaded = sg.load(tmp_path / "model")
    assert torch.equal(loaded.posterior(W).mean, model.posterior(W).mean)
    conditioned = model.condition_on_observations(W[:3], wave(W[:3]))
    assert torch.isfinite(conditioned.posterior(W).mean).all()
    by_hand = model.gps[0].predict(model.input_transform(W)).mean.unsqueeze(-1)
    assert_close(model.outcome_transform.untransform(by_hand)[0], model.posterior(W).mean, **tolerance(W.dtype))


def test_the_gradient_of_the_bound_reaches_the_warp(data):
    X, Y = data[0][:8], data[1][:8, 0]
    warp = Warp(2, [0, 1], bounds=BOUNDS).double().eval()
    kernel = WarpedKernel(ScaleKernel(MaternKernel(2.5, ard_num_dims=2)), warp, torch.stack(list(X.aminmax(dim=0))))
    setting = Hyperparameters(kernel.double(), ConstantMean().double(), Gaussian(0.1), torch.rand(4, 2).double(), {})
    space = hyperparameter_space(setting)
    assert sum("concentration" in name for name in space.names) == 2
    observed = Observed(X, Y)
    noise = torch.tensor(0.1, dtype=torch.float64)

    def bound(x):
        return space.evaluate(x, lambda one: collapsed_bound(one, observed, noise, beta=1.0))

    start = space.start + 0.1 * torch.randn(len(space.start), dtype=torch.float64)
    assert torch.autograd.gradcheck(bound, start.requires_grad_())


def test_a_chain_of_transforms_is_learned(data):
    chain = ChainedInputTransform(first=Normalize(2), warp=Warp(2, [0]))
    X, Y = (each[:12] for each in data[:2])
    model = sg.OnlineGP.fit(X, Y, num_inducing=5, input_transform=chain, max_iterations=3)
    assert float(model.input_transform["warp"].concentration0) != 1.0


def test_what_has_the_units_of_a_known_transform_is_refused(data):
    X, Y = (each[:12] for each in data[:2])
    model = sg.OnlineGP.fit(X, Y, num_inducing=4, max_iterations=1)
    with pytest.raises(UnsupportedError, match="inducing"):
        sg.OnlineGP.fit(X, Y, input_transform=Warp(2, [0]), inducing=X[:5])
    with pytest.raises(UnsupportedError, match="inducing"):
        sg.OnlineGP.fit(X, Y, input_transform=Warp(2, [0]), start=model)
    with pytest.raises(UnsupportedError, match="LinearMean"):
        sg.OnlineGP.fit(X, Y, input_transform=Warp(2, [0]), mean=LinearMean(2))
