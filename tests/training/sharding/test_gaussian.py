import pickle

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.likelihoods import Gaussian
from streamgp.testing.tolerances import regression_condition, rounding, tolerance, within
from streamgp.training.collapsed import collapsed_bound
from streamgp.training.features import Observed
from streamgp.training.parameters import hyperparameter_space
from streamgp.training.priors import Layout
from streamgp.training.sharding import MappedShards
from streamgp.training.sharding.gaussian import gaussian_objective
from streamgp.training.sharding.shards import ParameterPoint
from streamgp.training.starting import starting_hyperparameters


def pickled_map(function, items):
    """A map as that of a pool of processes: everything is pickled on the way."""
    for item in items:
        yield pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(item)))))


def problem(rng, n=50, m=6):
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    y = torch.sin(4.0 * X[:, 0]) + 0.2 * torch.randn(n, generator=rng, dtype=torch.float64)
    data = Observed(X, y)
    setting = starting_hyperparameters(
        data, likelihood=Gaussian(0.1), kernel=None, mean=None, start=None, latent_variance=1.0
    )
    return data, type(setting)(setting.kernel, setting.mean, setting.likelihood, X[:m] + 0.01, {})


@pytest.mark.parametrize("beta", [1.0, 0.3])
def test_value_and_gradient_are_those_of_all_rows_at_once(rng, beta):
    data, setting = problem(rng)
    space = hyperparameter_space(setting, learn_inducing=True)
    x = space.start.clone().requires_grad_(True)
    whole = space.evaluate(x, lambda s: collapsed_bound(s, data, s.likelihood.noise_variance, beta=beta))
    (gradient,) = torch.autograd.grad(whole, x)
    shards = MappedShards(list(zip(data.inputs.split(17), data.targets.split(17), strict=True)), pickled_map)
    layout = Layout(setting, True, {}, {})
    summed = gaussian_objective(shards, ParameterPoint(layout, x), data.jitter, beta=beta)(x)
    (other,) = torch.autograd.grad(summed, x)
    assert_close(summed, whole, **rounding(x.dtype, condition=regression_condition(50, 0.1)))
    size = float(gradient.abs().max())
    assert_close(other, gradient, **rounding(x.dtype, condition=regression_condition(50, 0.1), scale=size))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [pytest.param(torch.float32, marks=pytest.mark.thorough), torch.float64])
def test_a_fit_over_shards_is_the_fit_of_all_rows(rng, dtype):
    X = torch.rand(40, 2, generator=rng, dtype=torch.float64).to(dtype)
    y = torch.sin(5.0 * X[:, 0]) + X[:, 1] + 0.1 * torch.randn(40, generator=rng).to(dtype)
    options = {"map": map, "num_inducing": 5, "max_iterations": 5}
    # What a fit multiplies rounding by, in each of five steps; bounds are in double precision always.
    same = within(rounding(torch.float64, condition=5.0 * regression_condition(40, 0.01)))
    one = sg.fit([(X, y)], **options)
    many = sg.fit(list(zip(X.split(13), y.split(13), strict=True)), **options)
    assert many.info.bound == pytest.approx(one.info.bound, **same)
    assert_close(many.gp.inducing_points, one.gp.inducing_points)
    assert many.gp.inducing_points.dtype == dtype
    warm = {"start": one, "max_iterations": 2}
    at_once, apart = sg.fit(X, y, num_inducing=5, **warm), sg.fit([(X[:9], y[:9]), (X[9:], y[9:])], map=map, **warm)
    assert apart.info.bound == pytest.approx(at_once.info.bound, **same)
    assert apart.info.trace_slack == pytest.approx(at_once.info.trace_slack, **within(tolerance(dtype)))
    assert_close(apart.gp.predict(X).mean, at_once.gp.predict(X).mean, **tolerance(dtype))


@pytest.mark.slow
def test_the_scale_of_the_targets_does_not_matter_over_shards(rng):
    X = torch.rand(60, 2, generator=rng, dtype=torch.float64)
    y = torch.sin(5.0 * X[:, 0]) + X[:, 1] + 0.1 * torch.randn(60, generator=rng, dtype=torch.float64)
    options = {"map": map, "num_inducing": 10, "max_iterations": 30}
    usual, tiny = (sg.fit([(X[:25], s * y[:25]), (X[25:], s * y[25:])], **options) for s in (1.0, 1e-9))
    errors = [float((1e9 * tiny.gp.predict(X).mean - y).std()), float((usual.gp.predict(X).mean - y).std())]
    assert errors[0] < 1.05 * errors[1]
