import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.testing.tolerances import approximation, within
from streamgp.training.features import observed_features
from streamgp.training.parameters import hyperparameter_space
from streamgp.training.priors import Layout
from streamgp.training.sharding import MappedShards
from streamgp.training.sharding.shards import ParameterPoint
from streamgp.training.sharding.sites import find_sites_over_shards, sites_objective
from streamgp.training.sites_bound import optimal_sites, sites_bound

# Where the iteration for sites stops.
SITES = approximation(1e-8, "iteration")


@pytest.mark.parametrize(
    "likelihood", [sg.likelihoods.Poisson(), sg.likelihoods.Bernoulli()], ids=["counts", "classes"]
)
def test_sites_are_those_of_all_rows_at_once(problem, likelihood):
    data, setting = problem(likelihood)
    shards = MappedShards(list(zip(data.inputs.split(11), data.targets.split(11), strict=True)), map)
    place = ParameterPoint(
        Layout(setting, True, {}, {}), hyperparameter_space(setting, learn_inducing=True).start, likelihood
    )
    totals, bound = find_sites_over_shards(shards, place, tolerance=1e-8)
    sites, _ = optimal_sites(setting, data, tolerance=1e-8)
    phi = observed_features(setting, data).phi
    assert bound == pytest.approx(float(sites_bound(setting, data, sites).detach()), **within(SITES))
    assert totals.num_data == 40
    assert_close(totals.precision, (phi * sites.precision) @ phi.mT, **SITES)


@pytest.mark.slow
def test_a_fit_of_counts_over_shards_is_the_fit_of_all_rows(problem):
    data, _ = problem(sg.likelihoods.Poisson())
    X, y = data.inputs, data.targets
    options = {"map": map, "likelihood": sg.likelihoods.Poisson(), "num_inducing": 3, "max_iterations": 2}
    one = sg.fit([(X, y)], **options)
    many = sg.fit([(X[:9], y[:9]), (X[9:], y[9:])], **options)
    assert many.info.bound == pytest.approx(one.info.bound, **within(SITES))
    assert_close(many.gp.inducing_points, one.gp.inducing_points)
    at_once = sg.fit(X, y, num_inducing=3, start=one, max_iterations=1)
    apart = sg.fit([(X[:9], y[:9]), (X[9:], y[9:])], map=map, start=one, max_iterations=1)
    assert apart.info.bound == pytest.approx(at_once.info.bound, **within(SITES))
    assert_close(apart.predict(X).mean, at_once.predict(X).mean, **SITES)


@pytest.mark.slow
def test_comparisons_are_fitted_over_shards(rng):
    X = torch.rand(12, 2, 1, generator=rng, dtype=torch.float64)
    y = (X[:, 0, 0] > X[:, 1, 0]).double()
    options = {"map": map, "likelihood": sg.likelihoods.Preference(), "num_inducing": 2, "max_iterations": 1}
    one = sg.fit([(X, y)], **options)
    many = sg.fit([(X[:5], y[:5]), (X[5:], y[5:])], **options)
    assert many.info.bound == pytest.approx(one.info.bound, **within(SITES))


@pytest.mark.parametrize(
    "likelihood", [sg.likelihoods.Poisson(), sg.likelihoods.Bernoulli()], ids=["counts", "classes"]
)
def test_bound_and_gradient_are_those_of_all_rows_at_once(problem, likelihood):
    data, setting = problem(likelihood)
    shards = MappedShards(list(zip(data.inputs.split(11), data.targets.split(11), strict=True)), map)
    layout = Layout(setting, True, {}, {})
    space = hyperparameter_space(setting, learn_inducing=True)
    start = ParameterPoint(layout, space.start, likelihood)
    find_sites_over_shards(shards, start, tolerance=1e-8)
    sites, _ = optimal_sites(setting, data, tolerance=1e-8)
    x = (space.start + 0.02).requires_grad_(True)
    whole = space.evaluate(x, lambda s: sites_bound(s, data, sites))
    (expected,) = torch.autograd.grad(whole, x)
    summed = sites_objective(shards, start)(x)
    (gradient,) = torch.autograd.grad(summed, x)
    assert_close(summed, whole, **approximation(1e-8, "iteration"))
    assert_close(gradient, expected, **approximation(1e-8, "iteration", scale=float(expected.abs().max())))
