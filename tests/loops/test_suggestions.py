"""Suggestions are plain points that say why they were suggested."""

import copy
import gc
import json
import math
import pickle
from weakref import ref

import pytest
import torch

import streamgp as sg
from streamgp.loops.suggestions import SuggestedPoint
from streamgp.testing.tolerances import judgement, within

SPACE = {"heat": sg.Real(0.0, 1.0), "kind": sg.Categorical(["a", "b"])}
LIMIT = [sg.Constraint(upper=0.6, name="waste")]


def outcome(point):
    return [-((point["heat"] - 0.7) ** 2), point["heat"]]


@pytest.fixture
def optimizer():
    optimizer = sg.Optimizer(SPACE, constraints=LIMIT, num_initial=4)
    for point in optimizer.ask(6):
        optimizer.tell(point, outcome(point))
    return optimizer


def test_a_reason_says_what_is_expected_and_how_likely_it_is_to_improve_or_to_fail(optimizer):
    (point,) = asked = optimizer.ask()
    (why,) = asked.why
    assert point.why == why
    assert why.rule in repr(asked)
    assert list(why.expected) == ["objective", "waste"]
    for name, one in why.expected.items():
        found = optimizer.predict([point], output=name)
        assert [one.mean, one.lower, one.upper] == [float(part) for part in (found.mean, found.lower, found.upper)]
    assert why.to_row()["waste expected"] == why.expected["waste"].mean
    assert 0.0 <= why.improves <= 1.0
    # Of Gaussian latent values: the probability to be above a value is that of its distance in deviations.
    near = optimizer.best()
    std = float(optimizer.predict([point]).std)
    expected = 0.5 * math.erfc((near.mean - why.expected["objective"].mean) / std / math.sqrt(2.0))
    assert why.improves == pytest.approx(expected, **within(judgement(absolute=0.02)))
    hot, cold = optimizer.why([{"heat": 0.95, "kind": "a"}, {"heat": 0.1, "kind": "a"}])
    assert hot.fails > 0.99
    assert cold.fails < 0.01
    assert cold.rule == "chosen by you"


def test_before_there_is_a_model_only_the_rule_is_known():
    asked = sg.Optimizer(SPACE).ask(2)
    assert [str(why) for why in asked.why] == ["initial design"] * 2
    assert asked[0].why.to_row() == {"why": "initial design"}


def test_points_are_plain_for_everyone_else(optimizer):
    asked = optimizer.ask(2)
    plain = [dict(one) for one in asked]
    assert asked == plain
    assert json.loads(json.dumps(asked)) == plain
    for copied in (copy.deepcopy(asked), pickle.loads(pickle.dumps(asked))):
        assert type(copied) is list
        assert type(copied[0]) is dict
        assert copied == plain
    asked[0]["heat"] = 0.25
    assert isinstance(asked[0], SuggestedPoint)
    optimizer.tell(asked, [outcome(one) for one in asked])
    assert optimizer.X[-2]["heat"] == 0.25


def test_tensors_of_points_are_plain_for_everyone_else():
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2, num_initial=3)
    X = optimizer.ask(4)
    optimizer.tell(X, -X.square().sum(-1))
    X = optimizer.ask(2)
    assert repr(X).count("better with") == 2
    for one in (X + 0.0, X.clone(), X[:], copy.deepcopy(X), pickle.loads(pickle.dumps(X)), torch.cat([X])):
        assert type(one) is torch.Tensor
        assert torch.equal(one, X)
    assert X.numpy().shape == (2, 2)


def test_trade_offs_improve_where_no_known_one_is_better():
    objectives = [sg.Objective("more"), sg.Objective("less", maximize=False)]
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2, objectives=objectives, num_initial=2)
    X = torch.tensor([[0.2, 0.5], [0.5, 0.5], [0.8, 0.5], [0.5, 0.0], [0.5, 1.0]], dtype=torch.float64)
    optimizer.tell(X, torch.stack([X[:, 0], X[:, 1]], dim=-1))
    better, worse = optimizer.why([[0.9, 0.1], [0.1, 0.9]])
    assert better.improves > 0.9
    assert worse.improves < 0.1


def test_a_table_of_points_has_the_reasons_beside(optimizer):
    pytest.importorskip("pandas")
    frame = optimizer.ask(2, as_frame=True)
    assert list(frame.columns) == list(SPACE)
    assert len(frame.attrs["why"]) == 2


def test_suggestions_that_are_kept_let_their_models_go(optimizer):
    first = optimizer.ask()
    model = ref(optimizer.to_parts()["state"].surrogate)
    optimizer.tell(first, [outcome(one) for one in first])
    second = optimizer.ask()
    assert first.why[0].expected
    assert second.why[0].expected
    gc.collect()
    assert model() is None
