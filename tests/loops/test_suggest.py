import warnings
from dataclasses import replace

import pytest
import torch

import streamgp as sg
from streamgp.acquisition import (
    ExpectedImprovement,
    Gibbon,
    KnowledgeGradient,
    LookaheadThompson,
    NoisyExpectedImprovement,
    Random,
    Search,
    Thompson,
    UpperConfidenceBound,
)
from streamgp.errors import StreamGPWarning
from streamgp.loops.state import refitted
from streamgp.loops.suggest import make_context
from streamgp.testing.tolerances import judgement, within

SMALL = Search(num_restarts=2, raw_samples=16, max_iterations=4)
BOX = [(-5.0, 10.0), (0.0, 15.0)]
_FITTED = {}
WIDTH = 15.0
RULES = [
    KnowledgeGradient(4),
    NoisyExpectedImprovement(16),
    ExpectedImprovement(16),
    UpperConfidenceBound(num_samples=16),
    Gibbon(num_candidates=100),
    Thompson(100),
    LookaheadThompson(100),
    Random(),
]


def wave(X):
    return torch.sin(0.3 * X).sum(-1)


def told(acquisition, rng, **options):
    optimizer = sg.Optimizer(BOX, acquisition=acquisition, search=SMALL, num_initial=4, **options)
    X = optimizer.ask(10)
    optimizer.tell(X, wave(X) + 0.01 * torch.randn(10, generator=rng, dtype=torch.float64))
    surrogate = _FITTED.get("surrogate")  # the same data for all rules
    if surrogate is not None:
        optimizer._state = replace(optimizer._state, surrogate=surrogate)
    elif optimizer.inspect(refit=False).rule.innermost.needs_model:
        _FITTED["surrogate"] = optimizer.inspect().surrogate
    return optimizer


def closest(X):
    """Distance of the closest two points, in the largest coordinate."""
    distances = (X.unsqueeze(1) - X).abs().amax(-1)
    return (distances + torch.eye(len(X)) * 1e9).min()


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", RULES, ids=repr)
def test_three_asks_without_tells_give_three_points_far_apart(acquisition, rng):
    optimizer = told(acquisition, rng)
    X = torch.cat([optimizer.ask() for _ in range(3)])
    assert closest(X) > 5e-3 * WIDTH
    assert torch.equal(optimizer.pending, X)
    assert X.min() >= -5.0
    assert X.max() <= 15.0


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", [RULES[0], RULES[1], RULES[5]], ids=repr)
def test_points_of_a_batch_are_apart(acquisition, rng):
    assert closest(told(acquisition, rng).ask(4)) > 5e-3 * WIDTH


def test_the_initial_design_is_the_same_in_parts_and_at_once():
    whole, parts = sg.Optimizer(BOX, seed=3), sg.Optimizer(BOX, seed=3)
    assert torch.equal(whole.ask(6), torch.cat([parts.ask(2), parts.ask(), parts.ask(3)]))
    assert not torch.equal(sg.Optimizer(BOX, seed=4).ask(6), sg.Optimizer(BOX, seed=3).ask(6))


def test_the_design_goes_on_while_too_few_evaluations_have_succeeded():
    optimizer, plain = sg.Optimizer(BOX, num_initial=4), sg.Optimizer(BOX, num_initial=4)
    expected = plain.ask(12)
    asked = [optimizer.ask(4)]
    optimizer.tell_failure(asked[0])
    asked.append(optimizer.ask(4))  # nothing has succeeded
    optimizer.tell(asked[1][:1], [1.0])
    asked.append(optimizer.ask(4))  # less than half of what was wanted
    assert torch.equal(torch.cat(asked), expected)
    assert optimizer.inspect(refit=False).surrogate is None


@pytest.mark.parametrize("options", [{}, {"likelihood": "bernoulli"}, {"constraints": [sg.Constraint(upper=2.0)]}])
def test_the_design_goes_on_while_all_outcomes_are_alike(options):
    optimizer = sg.Optimizer(BOX, num_initial=4, **options)
    asked = [optimizer.ask(4)]
    for _ in range(3):
        optimizer.tell(asked[-1], torch.ones(len(asked[-1]), len(optimizer._settings.outcomes)))
        asked.append(optimizer.ask(2))
    assert torch.equal(torch.cat(asked), sg.Optimizer(BOX, num_initial=4).ask(10))
    assert optimizer.inspect(refit=False).surrogate is None


@pytest.mark.slow
def test_the_model_takes_over_at_the_first_outcome_that_differs():
    optimizer = sg.Optimizer(BOX, num_initial=4, search=SMALL)
    optimizer.tell(optimizer.ask(6), [1.0] * 5 + [2.0])
    optimizer.ask()
    assert optimizer.inspect(refit=False).surrogate is not None


def test_outcomes_that_are_alike_repeat_no_point_of_a_finite_space():
    optimizer = sg.Optimizer({"stirrers": sg.Integer(1, 6)}, num_initial=2)
    for _ in range(6):
        optimizer.tell(optimizer.ask(), [1.0])
    assert {one["stirrers"] for one in optimizer.X} == set(range(1, 7))


@pytest.mark.slow
def test_the_model_takes_over_when_enough_is_known_and_awaited():
    optimizer = sg.Optimizer(BOX, num_initial=4, search=SMALL)
    X = optimizer.ask(4)
    optimizer.tell(X[:2], wave(X[:2]))
    optimizer.ask()
    assert optimizer.inspect(refit=False).surrogate is not None


@pytest.mark.slow
def test_data_that_was_never_asked_for_counts(rng):
    optimizer = sg.Optimizer(BOX, search=SMALL, acquisition="qei")
    X = 10 * torch.rand(8, 2, generator=rng, dtype=torch.float64)
    optimizer.tell(X, wave(X))
    optimizer.ask()
    assert optimizer._state.num_designed == 0
    assert optimizer.inspect(refit=False).surrogate is not None


@pytest.mark.slow
def test_a_failed_point_is_not_asked_for_again():
    # Improvement alone would go to the same maximum again.
    optimizer = sg.Optimizer([(0.0, 1.0)], search=SMALL, acquisition="qei", num_initial=4)
    X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    optimizer.tell(X, -(X - 0.5).square().squeeze(-1))
    failed = []
    for _ in range(2):
        failed.append(optimizer.ask())
        optimizer.tell_failure(failed[-1])
    assert closest(torch.cat(failed)) >= 5e-3 - 1e-9


def test_random_points_are_those_of_the_design():
    optimizer = sg.Optimizer(BOX, acquisition="random", num_initial=2)
    X = optimizer.ask(3)
    optimizer.tell(X, wave(X))
    assert torch.equal(torch.cat([X, optimizer.ask(3)]), sg.Optimizer(BOX).ask(6))
    assert optimizer.inspect(refit=False).surrogate is None


def _ripples(X):
    """Steep everywhere: to a smooth model it looks like noise."""
    return torch.cos(40.0 * X).sum(-1) - X.square().sum(-1)


def _rippled(*, noise=0.0, seed=0):
    optimizer = sg.Optimizer([(-1.0, 1.0)] * 2, search=SMALL, num_initial=10, seed=seed)
    draw, asked = torch.Generator().manual_seed(seed), []
    for _ in range(18):
        X = optimizer.ask()
        asked.append(X)
        optimizer.tell(X, _ripples(X) + noise * torch.randn(1, generator=draw, dtype=torch.float64))
    return optimizer, torch.cat(asked)


@pytest.mark.slow
def test_the_best_point_is_asked_for_again_once_where_the_model_sees_noise():
    optimizer, X = _rippled()
    same = (X.unsqueeze(1) == X).all(-1).sum(-1)
    assert int(same.max()) == 2
    assert int((same == 2).sum()) == 2
    again = int((same == 2).nonzero()[-1])
    assert float(_ripples(X[again])) == float(_ripples(X[:again]).max())
    # It had the same outcome, so there is no noise, and the best outcome is the best point.
    best = optimizer.best()
    assert float(_ripples(torch.as_tensor(best.X))) == float(_ripples(X).max())


@pytest.mark.slow
def test_the_best_feasible_point_is_asked_for_again_where_a_constraint_looks_noisy():
    optimizer = sg.Optimizer([(-1.0, 1.0)] * 2, constraints=[sg.Constraint(upper=0.0)], search=SMALL, num_initial=16)
    X = optimizer.ask(16)
    limit = _ripples(X) + 0.5
    optimizer.tell(X, torch.stack([-X.square().sum(-1), limit], -1))
    feasible = X[limit <= 0.0]
    assert torch.equal(optimizer.ask()[0], feasible[feasible.square().sum(-1).argmin()])
    assert not (optimizer.ask().unsqueeze(1) == X).all(-1).any()


@pytest.mark.slow
def test_noise_that_a_repeated_point_shows_is_noise():
    optimizer, X = _rippled(noise=0.5)
    assert int((X.unsqueeze(1) == X).all(-1).sum(-1).max()) >= 2
    assert not optimizer.inspect().surrogate.is_noise_free(0)


@pytest.mark.slow
def test_no_point_is_repeated_where_the_model_needs_no_noise():
    optimizer = sg.Optimizer(BOX, search=SMALL, num_initial=14)
    asked = []
    for _ in range(18):
        X = optimizer.ask()
        asked.append(X)
        optimizer.tell(X, wave(X))
    X = torch.cat(asked)
    assert int((X.unsqueeze(1) == X).all(-1).sum(-1).max()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("num_told", "q", "is_far"), [(9, 1, False), (11, 1, True), (9, 3, True)])
def test_with_several_objectives_one_point_of_eight_is_far_from_all_others(rng, num_told, q, is_far):
    objectives = [sg.Objective("cost", maximize=False), sg.Objective("loss", maximize=False)]
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2, objectives=objectives, num_initial=4, search=SMALL)
    X = torch.tensor([0.8, 0.0]) + torch.tensor([0.2, 1.0]) * torch.rand(num_told, 2, generator=rng)
    # Both fall toward the right edge, as far as is known.
    optimizer.tell(X, torch.stack([1.0 - X[:, 0] + X[:, 1], 2.0 - X[:, 0] - X[:, 1]], -1))
    points = optimizer.ask(q)
    assert bool((points[:, 0] < 0.3).any()) is is_far
    assert int((points[:, 0] < 0.3).sum()) == int(is_far)


def test_a_finite_space_of_which_all_is_known_has_no_point_far_from_others():
    objectives = [sg.Objective("cost", maximize=False), sg.Objective("loss", maximize=False)]
    space = {"a": sg.Integer(0, 2), "b": sg.Categorical(["x", "y"])}
    optimizer = sg.Optimizer(space, objectives=objectives, num_initial=3, search=SMALL)
    points = [{"a": a, "b": b} for a in range(3) for b in "xy"] + [{"a": 0, "b": "x"}] * 4
    optimizer.tell(points, torch.tensor([[p["a"], 2.0 - p["a"] + (p["b"] == "x")] for p in points]))
    with pytest.warns(StreamGPWarning, match="nothing left to ask for"):
        assert len(optimizer.ask(1)) == 1


@pytest.mark.parametrize("num_initial", [None, 1, 5])
def test_no_category_is_asked_for_again_while_others_were_not_and_then_that_is_said(num_initial):
    outcomes = {"water": 1.0, "ethanol": 3.0, "acetone": 2.0}
    space = {"solvent": sg.Categorical(list(outcomes))}
    optimizer = sg.Optimizer(space, num_initial=num_initial, search=SMALL)
    asked = []

    def ask_and_tell():
        (point,) = optimizer.ask()
        asked.append(point["solvent"])
        optimizer.tell([point], [outcomes[asked[-1]]])

    with warnings.catch_warnings():
        warnings.simplefilter("error", StreamGPWarning)
        for _ in range(4):  # the last one tells whether outcomes repeat
            ask_and_tell()
    assert set(asked[:3]) == set(outcomes)
    for _ in range(2):
        optimizer.tell([{"solvent": asked[3]}], [outcomes[asked[3]]])
    with pytest.warns(StreamGPWarning, match=r"no noise.*nothing left to ask for.*See best\(\)"):
        ask_and_tell()
    assert asked[-1] == "ethanol"


def test_points_asked_for_together_are_different_while_a_finite_space_has_others():
    space = {"solvent": sg.Categorical(["water", "ethanol"]), "runs": sg.Integer(1, 3)}
    optimizer = sg.Optimizer(space, search=SMALL, num_initial=2)
    first = optimizer.ask(4)
    optimizer.tell(first[:2], [1.0, 2.0])
    both = [tuple(point.values()) for point in first + optimizer.ask(2)]
    assert len(set(both)) == 6


def test_noise_may_be_averaged_in_a_finite_space_without_a_warning(rng):
    optimizer = sg.Optimizer({"solvent": sg.Categorical(["water", "ethanol"])}, search=SMALL)
    for y in (1.0, 1.4, 0.7, 1.2, 0.9, 1.6):
        optimizer.tell(optimizer.ask(), [y])
    with warnings.catch_warnings():
        warnings.simplefilter("error", StreamGPWarning)
        optimizer.ask()


def test_integers_that_are_next_to_each_other_are_not_taken_for_the_same():
    optimizer = sg.Optimizer({"steps": sg.Integer(0, 400)}, search=SMALL, num_initial=2)
    optimizer.tell([{"steps": 7}, {"steps": 300}], [0.0, 1.0])
    space = optimizer.inspect(refit=False).space
    points = space.read([{"steps": 301}])
    kept = space.separate(points, space.read([{"steps": 300}, {"steps": 302}]), is_noisy=False, seed=0)
    assert space.show(kept) == [{"steps": 301}]


@pytest.mark.slow
def test_fixed_values_stay_where_a_model_doubts_the_best_point():
    space = {"x": sg.Real(0, 1), "stirrers": sg.Integer(1, 4), "solvent": sg.Categorical(["water", "ethanol"])}
    optimizer = sg.Optimizer(space, seed=0, maximize=False)
    for i in range(20):
        (point,) = optimizer.ask(1, fixed={"solvent": "water"} if i > 8 else None)
        assert i <= 8 or point["solvent"] == "water"
        value = (point["x"] - 0.4) ** 2 + 0.1 * abs(point["stirrers"] - 3) + (point["solvent"] == "water")
        optimizer.tell(point, value)


def test_within_a_context_known_points_are_what_they_are_expected_to_be_in_it():
    space = {"x": sg.Real(0, 1), "batch": sg.Categorical(["good", "bad"])}
    optimizer = sg.Optimizer(space, num_initial=4, search=SMALL)
    X = [{"x": x, "batch": batch} for x in (0.1, 0.5, 0.9) for batch in ("good", "bad")]
    optimizer.tell(X, [10.0 * (p["batch"] == "good") - (p["x"] - 0.5) ** 2 for p in X])
    parts = optimizer.to_parts()
    settings = replace(parts["settings"], space=parts["settings"].space.fixing({"batch": "bad"}))
    state = refitted(parts["state"], settings)
    baseline = make_context(state, settings).baseline
    assert torch.equal(baseline, settings.space.read([{"x": x, "batch": "bad"} for x in (0.1, 0.5, 0.9)]))
    assert len(make_context(state, parts["settings"]).baseline) == 6


@pytest.mark.slow
def test_contexts_have_best_points_of_their_own_and_are_searched_for_them():
    space = {"x": sg.Real(0, 1), "c": sg.Real(0, 1)}
    optimizer, draw, regret = sg.Optimizer(space, num_initial=6, seed=0), torch.Generator().manual_seed(0), []
    for _ in range(20):
        c = float(torch.rand((), generator=draw))
        (point,) = optimizer.ask(fixed={"c": c})
        optimizer.tell([point], [3.0 * c - (point["x"] - 0.2 - 0.6 * c) ** 2])
        regret.append((point["x"] - 0.2 - 0.6 * c) ** 2)
    assert sum(regret[12:]) / 8 < 0.01
    best = optimizer.best(fixed={"c": 0.5})
    assert best.X["c"] == 0.5
    assert best.X["x"] == pytest.approx(0.5, **within(judgement(absolute=0.1)))


def test_everything_may_be_fixed():
    space = {"x": sg.Real(0, 1), "c": sg.Real(0, 1)}
    optimizer = sg.Optimizer(space, num_initial=2, search=SMALL)
    optimizer.tell([{"x": 0.1, "c": 0.2}, {"x": 0.7, "c": 0.9}, {"x": 0.3, "c": 0.1}], [0.0, 1.0, 0.5])
    assert optimizer.ask(fixed={"x": 0.5, "c": 0.5}) == [{"x": 0.5, "c": 0.5}]
