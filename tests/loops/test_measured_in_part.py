"""Rows of which some outcomes were measured, and points outside the range, teach what they can."""

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import StreamGPWarning, ValueRangeError

SPACE = {"a": sg.Real(0.0, 1.0), "b": sg.Real(0.0, 1.0)}
LIMIT = [sg.Constraint(upper=9.0, name="heat")]
NAN = float("nan")


def rows(n, seed=0):
    X = torch.rand(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return X, X.sin().sum(-1), X.square().sum(-1)


def test_each_outcome_learns_from_the_rows_in_which_it_was_measured():
    X, first, heat = rows(12)
    y = torch.stack([first, heat], dim=-1)
    y[8:, 0], y[:4, 1] = NAN, NAN
    part, alone = (sg.Optimizer(SPACE, constraints=limits) for limits in (LIMIT, ()))
    part.tell(X, y)
    alone.tell(X[:8], first[:8])
    assert_close(part.predict(X).mean, alone.predict(X).mean)
    heat_alone = sg.Optimizer(SPACE, objectives=[sg.Objective("a")], constraints=LIMIT)
    heat_alone.tell(X[4:], torch.stack([first, heat], dim=-1)[4:])
    assert_close(part.predict(X, output="heat").mean, heat_alone.predict(X, output="heat").mean)
    assert part.best().observed == pytest.approx(float(first[:8].max()))
    assert len(part.ask()) == 1


def test_an_outcome_that_was_never_measured_is_asked_for_and_named():
    optimizer = sg.Optimizer(SPACE, constraints=LIMIT, num_initial=2)
    X, first, _ = rows(6)
    optimizer.tell(X, {"objective": first})
    with pytest.raises(ValueRangeError, match="Nothing is known yet of 'heat'"):
        optimizer.best()
    optimizer.ask()
    assert optimizer.inspect(refit=False).why == ("initial design",)


def test_a_front_takes_expected_values_where_one_was_not_measured():
    objectives = [sg.Objective("more"), sg.Objective("less", maximize=False)]
    optimizer = sg.Optimizer(SPACE, objectives=objectives)
    X, first, second = rows(8)
    y = torch.stack([first, second], dim=-1)
    y[0, 1] = NAN
    optimizer.tell(X, y)
    found = optimizer.best()
    assert found.mean.isfinite().all()
    optimizer.plot()


@pytest.mark.parametrize(
    "space",
    [SPACE, [(0.0, 1.0), (0.0, 1.0)], {"a": sg.Real(0.0, 1.0, step=0.25), "b": sg.Integer(0, 1)}],
    ids=["named", "box", "steps"],
)
def test_points_outside_the_range_are_learned_with_a_warning_and_never_suggested(space):
    optimizer = sg.Optimizer(space, num_initial=3)
    X = torch.tensor([[0.25, 0.0], [0.5, 1.0], [0.0, 1.0], [2.0, 3.0]], dtype=torch.float64)
    with pytest.warns(StreamGPWarning, match="1 of 4 points are outside the range .* row 3: "):
        optimizer.tell(X, [1.0, 2.0, 0.0, 9.0])
    told = optimizer.X if isinstance(space, list) else torch.tensor([list(one.values()) for one in optimizer.X])
    assert_close(told.double(), X)
    # The best point is one of the range, and what is expected there is improved on.
    assert optimizer.best().observed == 2.0
    for point in optimizer.ask(2):
        values = point.tolist() if isinstance(space, list) else list(point.values())
        assert all(0.0 <= value <= 1.0 for value in values)


def test_a_range_may_be_narrowed_and_widened_and_nothing_is_lost():
    space = {"t": sg.Real(100, 180, step=5), "s": sg.Categorical(["water", "oil", "air"]), "n": sg.Ordinal([1, 2, 3])}
    optimizer = sg.Optimizer(space, num_initial=4)
    points = [{"t": 100.0 + 20 * i, "s": "air" if i % 2 else "oil", "n": 1 + i % 3} for i in range(5)]
    optimizer.tell(points, [float(i) for i in range(5)])
    (waiting,) = optimizer.ask()
    narrow = {"t": sg.Real(110, 150), "s": sg.Categorical(["water", "oil"]), "n": sg.Ordinal([1, 3])}
    optimizer.change_range(narrow)
    assert points == optimizer.X
    assert optimizer.pending == [waiting]
    asked = optimizer.ask(4)
    assert all(110 <= one["t"] <= 150 and one["s"] != "air" and one["n"] != 2 for one in asked)
    assert optimizer.best().X in points[1:3]
    optimizer.change_range(space)
    assert points == optimizer.X
    assert optimizer.best().observed == 4.0
    with pytest.raises(sg.errors.OptionError, match="must be those of before, t, s, n, but are t"):
        optimizer.change_range({"t": sg.Real(1, 2)})
