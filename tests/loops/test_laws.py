"""What holds of every loop: runs repeat, and a saved one goes on as it would have."""

import math

import pytest
import torch

import streamgp as sg
from streamgp.acquisition import (
    ExpectedImprovement,
    KnowledgeGradient,
    LookaheadThompson,
    NoisyExpectedImprovement,
    Search,
    Thompson,
)
from streamgp.likelihoods import Binomial

SMALL = Search(num_restarts=2, raw_samples=16, max_iterations=3)
BOX = [(0.0, 2.0), (-1.0, 1.0)]
PLACES = torch.rand(40, 2, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
pytestmark = pytest.mark.slow


def hill(X):
    return (-3.0 * (X - torch.tensor([1.4, -0.3])).square().sum(-1)).exp()


def hill_that_fails(X):
    return torch.where(X[:, 0] > 1.6, math.nan, hill(X))


def prevalence(members):
    return (30.0 * torch.sigmoid(4.0 * PLACES[members, 0] - 2.0)).round()


def optimizer(**options):
    return lambda seed: sg.Optimizer(BOX, search=SMALL, num_initial=4, refit="never", seed=seed, **options)


def turbo(**options):
    return lambda seed: sg.TurboOptimizer(BOX, num_initial=4, num_inducing=10, seed=seed, **options)


def learner(acquisition):
    def make(seed):
        options = {"likelihood": Binomial(30), "threshold": 0.3, "num_initial": 4, "num_inducing": 10}
        return sg.PoolLearner(PLACES, acquisition=acquisition, seed=seed, **options)

    return make


LOOPS = {
    "knowledge gradient": (optimizer(acquisition=KnowledgeGradient(4)), hill),
    "noisy improvement, failures": (optimizer(acquisition=NoisyExpectedImprovement(16)), hill_that_fails),
    "improvement of counts": (
        optimizer(acquisition=ExpectedImprovement(16), likelihood="poisson"),
        lambda X: (20 * hill(X)).round(),
    ),
    "thompson": (optimizer(acquisition=Thompson(100), maximize=False), lambda X: -hill(X)),
    "trust region": (turbo(acquisition=LookaheadThompson(50, depth=2, num_paths=3)), hill),
    "trust region, failures": (turbo(acquisition=Thompson(100)), hill_that_fails),
    "trust region, exact": (turbo(model="exact", acquisition=Thompson(100)), hill),
    "integrated variance": (learner("integrated_variance"), prevalence),
    "hotspot entropy": (learner("hotspot_entropy"), prevalence),
    "random members": (learner("random"), prevalence),
}


@pytest.fixture(params=LOOPS.values(), ids=LOOPS.keys())
def loop(request):
    return request.param


def advance(loop, outcomes, num_steps):
    """Ask and tell; of the first step one outcome stays open."""
    suggested = []
    for step in range(num_steps):
        X = loop.ask(5 if step == 0 else 2)
        told = X[1:] if step == 0 else X
        loop.tell(told, outcomes(told))
        suggested.append(X.double())
    return torch.cat(suggested)


@pytest.mark.thorough  # a saved loop that goes on repeats it, too
def test_the_same_seed_and_calls_give_the_same_suggestions(loop):
    make, outcomes = loop
    first = advance(make(3), outcomes, 2)
    torch.manual_seed(torch.seed() % 2**31)
    assert torch.equal(advance(make(3), outcomes, 2), first)
    assert not torch.equal(make(4).ask(5).double(), first[:5])


def test_a_saved_loop_goes_on_as_it_would_have(loop, tmp_path):
    make, outcomes = loop
    saved = make(3)
    advance(saved, outcomes, 2)  # with a fitted model, and outcomes that it does not know yet
    saved.save(tmp_path / "loop")
    loaded = type(saved).load(tmp_path / "loop")
    assert repr(loaded) == repr(saved)
    assert repr(sg.load(tmp_path / "loop")) == repr(saved)
    assert torch.equal(loaded.ask(2), saved.ask(2))
