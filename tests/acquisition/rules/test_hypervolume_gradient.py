"""Knowledge gradient of two objectives, against areas of BoTorch and sampled outcomes."""

from dataclasses import replace

import pytest
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import Context, Search
from streamgp.acquisition.feasible_objective import FeasibleObjective
from streamgp.acquisition.rules.hypervolume import (
    HypervolumeKnowledgeGradient,
    _ExpectedArea,
    dominated_area,
)
from streamgp.errors import UnsupportedError
from streamgp.loops import Box

CUBE = Box.from_bounds([(0.0, 1.0)] * 2)
REFERENCE = torch.tensor([-0.5, 0.2], dtype=torch.float64)
NOISE = 0.1
GOALS = [sg.Objective("yield"), sg.Objective("waste", maximize=False)]


def test_areas_are_those_of_botorch(rng):
    scores = torch.randn(8, 7, 2, generator=rng, dtype=torch.float64)  # some dominated, some below the reference
    volume = Hypervolume(REFERENCE)
    expected = [volume.compute(points) for points in scores]
    assert_close(dominated_area(scores, REFERENCE), torch.tensor(expected, dtype=torch.float64))
    assert not dominated_area(REFERENCE - scores.abs(), REFERENCE).any()


def test_gradients_of_areas(rng):
    scores = torch.randn(2, 5, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda one: dominated_area(one, REFERENCE), (scores,))


@pytest.fixture
def context(smooth_model, rng):
    X = torch.rand(8, 2, generator=rng, dtype=torch.float64)
    Y = torch.stack([-(X - 0.7).square().sum(-1), (X - 0.2).square().sum(-1)], dim=-1)
    objective = FeasibleObjective((1.0, -1.0))
    search = Search(num_restarts=1, raw_samples=16, max_iterations=5)
    return Context(smooth_model(X, Y, noise=NOISE), objective, CUBE, X, Y[:, 0], X[:0], search)


def test_the_value_is_that_of_outcomes_drawn_from_the_belief(context, rng):
    x = torch.tensor([[0.45, 0.5]], dtype=torch.float64)
    function = _ExpectedArea(context, context.baseline, 256, 0)
    after = []
    for gp, sign in zip(context.model.gps, (1.0, -1.0), strict=True):
        joint = gp.predict(torch.cat([context.baseline, x]), covariance=True)
        mean, covariance = joint.mean, joint.covariance
        variance = covariance[-1, -1]
        residual = (variance + NOISE).sqrt() * torch.randn(2000, 1, generator=rng, dtype=torch.float64)
        after.append(sign * (mean + covariance[:, -1] / (variance + NOISE) * residual))
    scores = torch.stack(after, dim=-1)
    volume = Hypervolume(function.reference)
    areas = torch.tensor([volume.compute(points) for points in scores[:300]], dtype=torch.float64)
    assert_close(dominated_area(scores[:300], function.reference), areas)
    gains = dominated_area(scores, function.reference) - function.area
    found = function(x.unsqueeze(0)).squeeze(0)
    assert abs(float(found - gains.mean())) < 4.0 * float(gains.std()) / 2000**0.5
    assert float(found) > 0.0


def test_gradients_reach_the_points_and_pending_ones_count(context):
    function = _ExpectedArea(context, context.baseline, 4, 0)
    x = torch.tensor([[[0.45, 0.5]], [[0.3, 0.9]]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, (x,))
    alone = function(x)
    function.set_X_pending(torch.tensor([[0.4, 0.4]], dtype=torch.float64))
    assert (function(x) - alone).abs().min() > 1e-6


@pytest.mark.slow
def test_an_optimizer_asks_by_its_name():
    small = Search(num_restarts=1, raw_samples=8, max_iterations=3)
    optimizer = sg.Optimizer([(0.0, 1.0)], objectives=GOALS, acquisition="qhvkg", num_initial=4, search=small)
    X = optimizer.ask(5)
    optimizer.tell(X, torch.cat([-(X - 0.7).square(), (X - 0.2).square()], dim=-1))
    assert 0.0 <= float(optimizer.ask()) <= 1.0


def test_two_objectives_without_constraints_are_what_it_is_for(context):
    rule = HypervolumeKnowledgeGradient()
    with pytest.raises(UnsupportedError, match=r"two objectives .* but there are 3. Use acquisition='qnehvi'"):
        rule.function(replace(context, objective=FeasibleObjective((1.0,) * 3)), seed=0)
    with pytest.raises(UnsupportedError, match="HypervolumeKnowledgeGradient knows no constraints"):
        sg.Optimizer([(0.0, 1.0)], objectives=GOALS, constraints=[sg.Constraint(upper=1.0)], acquisition=rule)
