from dataclasses import replace

import pytest
import torch

import streamgp as sg
from streamgp.acquisition import NoisyExpectedImprovement, Search, Thompson
from streamgp.errors import ArgumentTypeError, UnsupportedError
from streamgp.loops import suggest
from streamgp.loops.policies import NeighborOfBest, RepeatBest, SpaceFilling, untried_neighbor, with_policies

SPACE = {
    "x": sg.Real(0.0, 1.0),
    "stirrers": sg.Integer(1, 4),
    "solvent": sg.Categorical(["water", "ethanol"]),
    "rows": sg.Integer(1, 100),
}


def told(points, values, space=SPACE):
    """An optimizer that was told of points, and what its loop makes of them."""
    optimizer = sg.Optimizer(space, maximize=False, num_initial=min(2, len(points)), seed=0)
    for point, value in zip(points, values, strict=True):
        optimizer.tell(point, value)
    optimizer.ask(1)
    optimizer.cancel()
    state, settings = optimizer._state, optimizer._settings
    return suggest.make_context(state, settings), settings.space, state.observations.points


def shown(space, point):
    return None if point is None else space.show(point)[0]


POINTS = [
    {"x": x, "stirrers": stirrers, "solvent": solvent, "rows": 50}
    for x in (0.1, 0.5, 0.9)
    for stirrers in (1, 4)
    for solvent in ("water", "ethanol")
]


def value(point):
    return (point["x"] - 0.5) ** 2 + 0.1 * abs(point["stirrers"] - 3) + (0.0 if point["solvent"] == "ethanol" else 2.0)


@pytest.mark.slow
def test_a_number_of_few_values_is_tried_next_door_to_the_best_point():
    context, space, taken = told(POINTS, [value(point) for point in POINTS])
    found = shown(space, untried_neighbor(replace(context, taken=taken)))
    assert (found["x"], found["solvent"], found["rows"]) == (pytest.approx(0.5), "ethanol", 50)
    assert found["stirrers"] in (2, 3)
    # What was tried is not asked for again, here or near by.
    for stirrers in (2, 3):
        taken = torch.cat([taken, space.read({"x": 0.55, "stirrers": stirrers, "solvent": "ethanol", "rows": 48})])
    assert untried_neighbor(replace(context, taken=taken)) is None


def test_what_is_far_worse_is_not_tried():
    points = [point for point in POINTS if not (point["x"] == 0.5 and point["solvent"] == "water")]
    context, space, taken = told(points, [value(point) for point in points])
    for stirrers in (1, 2, 3):
        taken = torch.cat([taken, space.read({"x": 0.5, "stirrers": stirrers, "solvent": "ethanol", "rows": 50})])
    # Water has not been tried near the best point, but costs 2 elsewhere.
    assert untried_neighbor(replace(context, taken=taken)) is None


@pytest.mark.parametrize("space", [{"x": sg.Real(0.0, 1.0)}, {"x": sg.Real(0.0, 1.0), "rows": sg.Integer(1, 100)}])
def test_numbers_of_many_values_have_no_neighbors(space):
    points = [{name: POINTS[i][name] for name in space} for i in (0, 4, 8)]
    context, space, taken = told(points, [1.0, 0.5, 0.7], space)
    assert untried_neighbor(replace(context, taken=taken)) is None


def test_fixed_parameters_stay():
    context, space, taken = told(POINTS, [value(point) for point in POINTS])
    assert untried_neighbor(replace(context, space=space.fixing({"stirrers": 4}), taken=taken)) is None


@pytest.mark.slow
def test_an_optimizer_asks_for_every_value_of_a_number_near_the_best_point():
    optimizer = sg.Optimizer(SPACE, maximize=False, seed=0)
    for _ in range(30):
        point = optimizer.ask(1)
        point = point[0] if isinstance(point, list) else point
        optimizer.tell(point, value(point))
    assert optimizer.best().X["stirrers"] == 3


def test_the_neighbor_of_a_single_point_is_tried():
    context, _, taken = told(POINTS[:1], [0.0])
    assert untried_neighbor(replace(context, taken=taken)) is not None


def asked(optimizer, outcome, num_asks):
    """The reasons of all points that were asked for one by one."""
    found = []
    for _ in range(num_asks):
        (point,) = optimizer.ask()
        found += optimizer.inspect(refit=False).why
        optimizer.tell([point], [outcome(point)])
    return found


def test_each_point_says_why_it_was_chosen():
    optimizer = sg.Optimizer(SPACE, num_initial=3, seed=0, search=Search(1, 8, 3))
    assert asked(optimizer, lambda point: -value(point), 3) == ["initial design"] * 3
    optimizer.tell(POINTS, [-value(point) for point in POINTS])
    reasons = asked(optimizer, lambda point: -value(point), 4)
    assert set(reasons) == {"noisy expected improvement", "untried neighbor of the best point"}


def test_policies_are_composed_and_rules_that_remember_stay_as_they_are():
    rule = NoisyExpectedImprovement()
    wrapped = with_policies(rule, num_objectives=1)
    assert wrapped == RepeatBest(NeighborOfBest(SpaceFilling(rule)))
    assert wrapped.innermost is rule
    assert with_policies(wrapped, num_objectives=1) is wrapped
    assert with_policies(rule, num_objectives=2) == SpaceFilling(rule)
    remembering = sg.TurboOptimizer([(0, 1)]).inspect(refit=False).rule
    assert with_policies(remembering, num_objectives=1) is remembering
    with pytest.raises(UnsupportedError, match="wraps rules that remember nothing, but TrustRegion does"):
        RepeatBest(remembering)
    not_checked_by_annotations = object.__new__(SpaceFilling)
    object.__setattr__(not_checked_by_annotations, "rule", "qnei")
    with pytest.raises(ArgumentTypeError, match="wraps a rule, but got a str"):
        not_checked_by_annotations.__post_init__()


@pytest.mark.slow
def test_policies_can_be_left_out():
    rule = SpaceFilling(Thompson(50))
    optimizer = sg.Optimizer(SPACE, acquisition=rule, num_initial=3, seed=0)
    assert set(asked(optimizer, lambda point: -value(point), 8)[3:]) == {"thompson"}
