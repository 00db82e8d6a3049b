from dataclasses import replace

import pytest
import torch

import streamgp as sg
from streamgp.acquisition import (
    Context,
    ExpectedImprovement,
    Gibbon,
    KnowledgeGradient,
    LookaheadThompson,
    MultiStep,
    NoisyExpectedImprovement,
    Search,
    Thompson,
    UpperConfidenceBound,
)
from streamgp.acquisition.feasible_objective import FeasibleObjective
from streamgp.acquisition.rules.names import OPTIMIZER_RULES, POOL_RULES, read_rule
from streamgp.errors import ArgumentTypeError, OptionError
from streamgp.loops import Box

SMALL = Search(num_restarts=2, raw_samples=16, max_iterations=15)
CUBE = Box.from_bounds([(0.0, 1.0)] * 2)
RULES = [
    KnowledgeGradient(4),
    MultiStep(4, 2),
    NoisyExpectedImprovement(16),
    ExpectedImprovement(16),
    UpperConfidenceBound(num_samples=16),
    Gibbon(num_candidates=100),
    Thompson(100),
    LookaheadThompson(100),
]
CONSTRAINED = [rule for rule in RULES if rule.knows_constraints]
QUICK = [rule for rule in RULES if not isinstance(rule, MultiStep)]  # which is as knowledge gradient


@pytest.fixture
def bowl(smooth_model):
    """A context of a function whose maximum is at 0.7, the first coordinate being limited if there are limits."""

    def make(*, limits=(), sign=1.0, weight=1.0):
        X = torch.rand(25, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        value = 1.0 - 5.0 * (X - 0.7).square().sum(-1)
        Y = torch.stack([sign * value, X[:, 0] - 0.5], dim=-1)[:, : 1 + len(limits)]
        objective = FeasibleObjective((weight,), limits, cost=5.0)
        return Context(smooth_model(X, Y), objective, CUBE, X, Y[:, 0], X[:0], SMALL)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_optimum_of_a_bowl_is_approached(bowl, rule):
    points = rule.propose(bowl(), 3, seed=0)
    assert points.shape == (3, 2)
    assert ((points >= 0) & (points <= 1)).all()
    # A uniform point is 0.4 away in the mean.
    assert (points - 0.7).norm(dim=-1).min() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("rule", QUICK, ids=repr)
def test_a_seed_repeats_and_leaves_the_global_generator_alone(bowl, rule):
    made = bowl()
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    first = rule.propose(made, 1, seed=5)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(rule.propose(made, 1, seed=5), first)


@pytest.mark.slow
@pytest.mark.parametrize("rule", CONSTRAINED, ids=repr)
def test_limits_are_kept(bowl, rule):
    # The optimum is at 0.7, and the first coordinate must stay below 0.4.
    made = bowl(limits=((None, -0.1),))
    points = rule.propose(made, 1, seed=0)
    assert points[:, 0].max() < 0.45


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_weight_of_minus_one_minimizes(bowl, rule):
    points = rule.propose(bowl(sign=-1.0, weight=-1.0), 3, seed=0)
    assert (points - 0.7).norm(dim=-1).min() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("rule", [RULES[0], *RULES[2:6]], ids=repr)
def test_pending_points_are_taken_into_account(bowl, rule):
    made = bowl()
    alone = rule.propose(made, 1, seed=0)
    pending = replace(made, pending=alone)
    assert (rule.propose(pending, 1, seed=0) - alone).abs().max() > 1e-3


def test_thompson_sampling_takes_the_nearest_where_nothing_is_feasible(bowl):
    # No point reaches a first coordinate below -4.5.
    made = bowl(limits=((None, -5.0),))
    points = Thompson(100).propose(made, 3, seed=0)
    assert points[:, 0].max() < 0.15
    assert len(torch.unique(points, dim=0)) == 3


@pytest.mark.parametrize("name", [*OPTIMIZER_RULES, *POOL_RULES])
def test_a_name_is_short_for_a_rule_with_its_defaults(name):
    names = OPTIMIZER_RULES if name in OPTIMIZER_RULES else POOL_RULES
    assert read_rule(name, names) == names[name]()


def test_a_rule_is_taken_as_it_is():
    rule = Thompson(7)
    assert read_rule(rule, {}) is rule
    assert sg.Optimizer([(0, 1)], acquisition=rule).inspect(refit=False).rule.innermost is rule


def test_other_names_are_refused_and_former_ones_are_named():
    with pytest.raises(OptionError, match=r"acquisition must be one of 'qkg', 'qnei'.* but is 'ei'"):
        read_rule("ei", OPTIMIZER_RULES)
    with pytest.raises(OptionError, match="Its name is 'lookahead_thompson' now"):
        read_rule("lts", OPTIMIZER_RULES)
    with pytest.raises(ArgumentTypeError, match=r"acquisition must be a name or a rule"):
        read_rule(3, OPTIMIZER_RULES)
