from dataclasses import replace

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient
from botorch.sampling import SobolQMCNormalSampler
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import Context, KnowledgeGradient, MultiStep, Search
from streamgp.acquisition.feasible_objective import FeasibleObjective
from streamgp.acquisition.rules import knowledge_gradient
from streamgp.acquisition.rules.knowledge_gradient import knowledge_gradient_on, lookahead
from streamgp.likelihoods import Gaussian
from streamgp.loops import Box
from streamgp.seeds import derived_seed
from streamgp.testing.tolerances import approximation, tolerance

SEARCH = Search(num_restarts=3, raw_samples=32, max_iterations=30)
CUBE = Box.from_bounds([(0.0, 1.0)] * 2)


@pytest.fixture
def context(rng, smooth_model):
    """A context of a smooth function and, if there are limits, a linear one."""

    def make(*, objective=None, num_outputs=1, num_pending=0):
        X = torch.rand(12, 2, generator=rng, dtype=torch.float64)
        Y = torch.stack([torch.sin(4 * X).sum(-1) - 0.8, X.sum(-1) - 1.0], dim=-1)[:, :num_outputs]
        pending = torch.rand(num_pending, 2, generator=rng, dtype=torch.float64)
        model = smooth_model(X, Y, noise=0.05, lengthscale=0.3)
        return Context(model, objective or FeasibleObjective(), CUBE, X, Y[:, 0], pending, SEARCH)

    return make


@pytest.mark.parametrize("num_pending", [0, 2])
@pytest.mark.parametrize("q", [1, 2])
def test_one_step_is_botorchs_knowledge_gradient(context, rng, q, num_pending):
    made = context(num_pending=num_pending)
    sampler = SobolQMCNormalSampler(torch.Size([8]), seed=derived_seed(3, 0))
    theirs = qKnowledgeGradient(made.model, num_fantasies=8, sampler=sampler, X_pending=made.pending_or_none)
    ours = lookahead(made, [8], seed=3)
    X = torch.rand(4, q + 8, 2, generator=rng, dtype=torch.float64)
    assert_close(ours(X), theirs(X), **tolerance(torch.float64))


def test_knowledge_gradient_on_a_set_is_that_of_dense_algebra(context, rng):
    objective = FeasibleObjective((1.0,), ((None, 0.2),), cost=1.5)
    made = context(objective=objective, num_outputs=2)
    X, W = (torch.rand(*shape, 2, generator=rng, dtype=torch.float64) for shape in ((3, 1), (6,)))
    value, best = knowledge_gradient_on(made, X, W, num_fantasies=8, seed=0)
    base = SobolQMCNormalSampler(torch.Size([8]), seed=derived_seed(0, 0))
    base._construct_base_samples(made.model.posterior(X, observation_noise=True))
    for b in range(3):
        points = torch.cat([W, X[b]])
        moments = []
        for j, (gp, likelihood) in enumerate(zip(made.model.gps, made.model.likelihoods, strict=True)):
            prediction = gp.predict(points)
            K, m, noise = prediction.covariance, prediction.mean, likelihood.noise_variance
            gain = K[:, -1] / (K[-1, -1] + noise).sqrt()
            eps = base.base_samples[:, 0, 0, j]
            moments.append((m + eps.unsqueeze(-1) * gain, K.diagonal() - gain.square()))
        (first, _), (second, variance) = moments
        chance = torch.special.ndtr((0.2 - second) / variance.sqrt())
        expected = (first + 1.5) * chance - 1.5
        assert_close(value[b], expected.max(-1).values.mean(), **tolerance(torch.float64, scale=10.0))
        assert torch.equal(best[:, b], points[expected.argmax(-1)])


def test_parts_of_many_sets_are_the_whole(context, rng, monkeypatch):
    made = context(objective=FeasibleObjective((1.0,), ((None, 0.2),), cost=1.5), num_outputs=2)
    X, W = (torch.rand(*shape, 2, generator=rng, dtype=torch.float64) for shape in ((7, 2), (6,)))
    monkeypatch.setattr(knowledge_gradient, "_NUM_VALUES", 2 * 6 * 8)  # two sets at a time, and one in the end
    values, points = knowledge_gradient._knowledge_gradient_in_parts(made, X, W, num_fantasies=8, seed=0)
    expected, best = knowledge_gradient_on(made, X, W, num_fantasies=8, seed=0)
    assert_close(values, expected, **tolerance(torch.float64))
    assert torch.equal(points, best)


@pytest.mark.slow
@pytest.mark.parametrize(("num_steps", "q", "num_pending"), [(1, 1, 0), (1, 2, 1), (2, 1, 0)])
def test_the_search_ends_above_every_random_point(context, rng, num_steps, q, num_pending):
    made = context(num_pending=num_pending)
    rule = KnowledgeGradient(8) if num_steps == 1 else MultiStep(8, 4)
    found = rule.propose(made, q, seed=0)
    assert found.shape == (q, 2)
    assert ((found >= 0) & (found <= 1)).all()
    others = torch.rand(200, q, 2, generator=rng, dtype=torch.float64)
    W = torch.rand(300, 2, generator=rng, dtype=torch.float64)
    values, _ = knowledge_gradient_on(made, torch.cat([found.unsqueeze(0), others]), W, num_fantasies=64, seed=1)
    # One of the best of two hundred, judged by other fantasies; a look-ahead over two steps has another goal.
    rank = (values[1:] > values[0]).double().mean()
    assert rank < (0.1 if num_steps == 1 else 0.5)


def test_a_point_that_is_known_exactly_teaches_nothing(context, rng):
    made = context()
    W = torch.rand(50, 2, generator=rng, dtype=torch.float64)
    known = W[made.objective.value(made.model.posterior(W)).topk(1).indices]
    told = made.model.condition_on_observations(
        known, made.model.posterior(known).mean.detach(), torch.full((1, 1), 1e-9).double()
    )
    informed = replace(made, model=sg.OnlineGP(told.gps, Gaussian(0.05)))
    value, _ = knowledge_gradient_on(informed, known.unsqueeze(0), W, num_fantasies=16, seed=0)
    best = made.objective.value(informed.model.posterior(W)).max()
    assert_close(value.squeeze(0), best, **approximation(1e-8, "model"))  # known to a variance of 1e-9
