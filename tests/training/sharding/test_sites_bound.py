import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.testing.tolerances import approximation
from streamgp.training.parameters import hyperparameter_space
from streamgp.training.sharding.place import Layout, Place
from streamgp.training.sharding.shards import MappedShards
from streamgp.training.sharding.sites import find_sites_over_shards
from streamgp.training.sharding.sites_bound import sites_objective
from streamgp.training.sites_bound import optimal_sites, sites_bound


@pytest.mark.parametrize(
    "likelihood", [sg.likelihoods.Poisson(), sg.likelihoods.Bernoulli()], ids=["counts", "classes"]
)
def test_bound_and_gradient_are_those_of_all_rows_at_once(problem, likelihood):
    data, setting = problem(likelihood)
    shards = MappedShards(list(zip(data.inputs.split(11), data.targets.split(11), strict=True)), map)
    layout = Layout(setting, True, {}, {}, likelihood, None)
    space = hyperparameter_space(setting, learn_inducing=True)
    find_sites_over_shards(shards, Place(layout, space.start), tolerance=1e-8)
    sites, _ = optimal_sites(setting, data, tolerance=1e-8)
    x = (space.start + 0.02).requires_grad_(True)
    whole = space.evaluate(x, lambda s: sites_bound(s, data, sites))
    (expected,) = torch.autograd.grad(whole, x)
    summed = sites_objective(shards, layout)(x)
    (gradient,) = torch.autograd.grad(summed, x)
    assert_close(summed, whole, **approximation(1e-8, "iteration"))
    assert_close(gradient, expected, **approximation(1e-8, "iteration", scale=float(expected.abs().max())))
