import pytest
import torch

import streamgp as sg
from streamgp.optimizers import Search
from streamgp.optimizers.acquisitions import propose
from streamgp.optimizers.decision import Decision
from streamgp.optimizers.goal import Goal
from streamgp.optimizers.settings import ACQUISITIONS, CONSTRAINED

SMALL = Search(num_restarts=2, raw_samples=16, max_iterations=15, num_fantasies=4, num_samples=16, num_candidates=100)
MODELLED = [name for name in ACQUISITIONS if name != "random"]


@pytest.fixture
def bowl(smooth_model):
    """A decision about a function whose maximum is at 0.7, the first coordinate being limited if there are limits."""

    def make(*, limits=(), sign=1.0, weight=1.0):
        X = torch.rand(25, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        value = 1.0 - 5.0 * (X - 0.7).square().sum(-1)
        Y = torch.stack([sign * value, X[:, 0] - 0.5], dim=-1)[:, : 1 + len(limits)]
        return Decision(smooth_model(X, Y), Goal(weight, limits, cost=5.0), X, X[:0])

    return make


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELLED)
def test_the_optimum_of_a_bowl_is_approached(bowl, name):
    points = propose(name, bowl(), 3, search=SMALL, seed=0)
    assert points.shape == (3, 2)
    assert ((points >= 0) & (points <= 1)).all()
    # A uniform point is 0.4 away in the mean.
    assert (points - 0.7).norm(dim=-1).min() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELLED if name != "multi_step"])  # as qkg, and slow
def test_a_seed_repeats_and_leaves_the_global_generator_alone(bowl, name):
    made = bowl()
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    first = propose(name, made, 1, search=SMALL, seed=5)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(propose(name, made, 1, search=SMALL, seed=5), first)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CONSTRAINED if name != "random"])
def test_limits_are_kept(bowl, name):
    # The optimum is at 0.7, and the first coordinate must stay below 0.4.
    made = bowl(limits=((None, -0.1),))
    points = propose(name, made, 1, search=SMALL, seed=0)
    assert points[:, 0].max() < 0.45


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELLED if name != "lts"])
def test_a_weight_of_minus_one_minimises(bowl, name):
    points = propose(name, bowl(sign=-1.0, weight=-1.0), 3, search=SMALL, seed=0)
    assert (points - 0.7).norm(dim=-1).min() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qkg", "qnei", "qei", "qucb", "gibbon"])
def test_pending_points_are_taken_into_account(bowl, name):
    made = bowl()
    alone = propose(name, made, 1, search=SMALL, seed=0)
    pending = Decision(made.model, made.goal, made.baseline, alone)
    assert (propose(name, pending, 1, search=SMALL, seed=0) - alone).abs().max() > 1e-3


def test_thompson_sampling_takes_the_nearest_where_nothing_is_feasible(bowl):
    # No point reaches a first coordinate below -4.5.
    made = bowl(limits=((None, -5.0),))
    points = propose("thompson", made, 3, search=SMALL, seed=0)
    assert points[:, 0].max() < 0.15
    assert len(torch.unique(points, dim=0)) == 3


def test_the_names_are_those_of_the_optimizer():
    assert sg.Optimizer([(0, 1)])._settings.acquisition in ACQUISITIONS
    assert set(CONSTRAINED) < set(ACQUISITIONS)
