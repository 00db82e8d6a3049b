import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ShapeError, SupportError, UnsupportedError, ValueRangeError
from streamgp.testing.tolerances import tolerance

BOX = [(-5.0, 10.0), (0.0, 15.0)]
NAN = float("nan")


def same(first, second):
    return first.observations is second.observations and torch.equal(first.pending, second.pending)


def test_what_was_told_can_be_read():
    optimizer = sg.Optimizer(BOX)
    optimizer.tell([[0.0, 1.0], [2.0, 3.0]], [5.0, NAN])
    optimizer.tell_failure([[4.0, 5.0]])
    expected = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], dtype=torch.float64)
    assert_close(optimizer.X, expected, **tolerance(torch.float64))
    assert optimizer.y.isnan().squeeze(-1).tolist() == [False, True, True]
    assert optimizer.y[0].item() == 5.0
    assert "3 outcomes, 2 failed, 0 pending" in repr(optimizer)


def test_points_are_pending_until_they_are_told():
    optimizer = sg.Optimizer(BOX)
    X = optimizer.ask(4)
    assert torch.equal(optimizer.pending, X)
    optimizer.tell(X[1:2], [1.0])
    assert_close(optimizer.pending, X[[0, 2, 3]], **tolerance(torch.float64))
    optimizer.tell(X[2:3].round(decimals=3), [NAN])
    assert_close(optimizer.pending, X[[0, 3]], **tolerance(torch.float64))
    optimizer.tell([[0.123, 4.56]], [1.0])  # never asked for
    assert len(optimizer.pending) == 2
    optimizer.cancel(X[:1])
    assert_close(optimizer.pending, X[3:], **tolerance(torch.float64))
    optimizer.add_pending(X[:2])
    assert len(optimizer.pending) == 3
    optimizer.cancel()
    assert optimizer.pending.shape == (0, 2)


def test_a_point_that_is_pending_twice_is_told_once():
    optimizer = sg.Optimizer(BOX)
    optimizer.add_pending([[1.0, 1.0], [1.0, 1.0]])
    optimizer.tell([[1.0, 1.0]], [0.0])
    assert len(optimizer.pending) == 1


def test_one_missing_outcome_was_not_measured():
    optimizer = sg.Optimizer(BOX, constraints=[sg.Constraint(upper=1.0)])
    optimizer.tell([[0.0, 0.0], [1.0, 1.0]], [[1.0, NAN], [1.0, 2.0]])
    assert optimizer.to_parts()["state"].observations.is_success.all()
    assert optimizer.y[0, 0].item() == 1.0


def test_telling_nothing_changes_nothing():
    optimizer = sg.Optimizer(BOX)
    optimizer.tell(torch.empty(0, 2), torch.empty(0))
    assert len(optimizer.X) == 0


CONSTRAINED = {"likelihood": "poisson", "constraints": [sg.Constraint(upper=1.0, name="heat")]}


@pytest.mark.parametrize(
    ("options", "call", "error", "sentence"),
    [
        ({}, lambda o: o.tell([[0.0, 0.0]], [1.0, 2.0]), ShapeError, r"y must have shape \(1,\) .* has shape \(2,\)"),
        ({}, lambda o: o.tell([[0.0, 0.0]], [[1.0, 2.0]]), ShapeError, r"but has shape \(1, 2\). A failed evaluation"),
        ({}, lambda o: o.tell([[NAN, 0.0]], [1.0]), ValueRangeError, "X must be finite"),
        ({}, lambda o: o.tell([[0.0]], [1.0]), ShapeError, r"X must have shape \(n, 2\)"),
        ({}, lambda o: o.tell([[0.0, 0.0]], [float("inf")]), SupportError, "Row 0 is infinite. Tell a failed evalua"),
        ({}, lambda o: o.tell_comparison([[0.0, 0.0]], [[1.0, 1.0]]), UnsupportedError, "likelihood='preference'"),
        ({}, lambda o: o.ask(0), ValueRangeError, "q must be a whole number of at least 1"),
        ({}, lambda o: o.cancel([[0.0]]), ShapeError, r"shape \(n, 2\)"),
        (
            CONSTRAINED,
            lambda o: o.tell([[0.0, 0.0]], [1.0]),
            ShapeError,
            r"\(1, 2\), the objective 'objective' and then constraint",
        ),
        (CONSTRAINED, lambda o: o.tell([[0.0, 0.0]], [[-1.0, 0.0]]), SupportError, "Outcomes of the objective .*-1"),
        (
            CONSTRAINED,
            lambda o: o.tell([[0.0, 0.0]], [[1.0, -float("inf")]]),
            SupportError,
            "Outcomes of constraint 'heat' cannot be used.*Row 0 is infinite",
        ),
        ({"likelihood": "preference"}, lambda o: o.tell([[0.0, 0.0]], [1.0]), UnsupportedError, "tell_comparison"),
        (
            {"likelihood": "preference"},
            lambda o: o.tell_comparison([[0.0, 0.0]], [[1.0, 1.0], [2.0, 2.0]]),
            ShapeError,
            r"have shapes \(1, 2\) and \(2, 2\)",
        ),
        ({"likelihood": "preference"}, lambda o: o.tell_failure([[0.0, 0.0]]), UnsupportedError, "tell_comparison"),
        ({"likelihood": "preference"}, lambda o: o.run(sum, 3), UnsupportedError, "preferences have none"),
        ({"likelihood": "preference"}, lambda o: o.plot_progress(), UnsupportedError, "Comparisons have no outcomes"),
        ({}, lambda o: o.best(), ValueRangeError, "Nothing is known yet: of 0 evaluations none has succeeded"),
        ({}, lambda o: o.model(), ValueRangeError, "Nothing is known yet"),
    ],
)
def test_a_call_that_is_refused_says_why_and_changes_nothing(options, call, error, sentence):
    optimizer = sg.Optimizer(BOX, **options)
    optimizer.ask(2)
    before = optimizer._state
    with pytest.raises(error, match=sentence):
        call(optimizer)
    assert optimizer._state is before


def test_a_refused_row_does_not_let_the_others_in():
    optimizer = sg.Optimizer(BOX, likelihood="poisson")
    X = optimizer.ask(3)
    before = optimizer._state
    with pytest.raises(SupportError, match=r"the first is 0\.5"):
        optimizer.tell(X, [1.0, 2.0, 0.5])
    assert same(optimizer._state, before)
