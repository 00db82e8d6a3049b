"""Outcomes are read by position or by name, and so is what is known of each."""

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError
from streamgp.likelihoods import Gaussian
from streamgp.loops.observations import Observations

POINTS = [{"x": 0.1}, {"x": 0.7}]
Y = torch.tensor([[1.0, 2.0], [3.0, torch.nan]], dtype=torch.float64)


@pytest.fixture
def optimizer():
    return sg.Optimizer(
        {"x": sg.Real(0, 1)},
        objectives=[
            sg.Objective("yield", likelihood=Gaussian(0.1, is_learned=False)),
            sg.Objective("waste", maximize=False, likelihood=Gaussian(0.2, is_learned=False)),
        ],
    )


def frame(rows):
    return pytest.importorskip("pandas").DataFrame(rows)


NAMED = {"waste": [2.0, torch.nan], "yield": [1.0, 3.0]}


@pytest.mark.parametrize(
    "y",
    [
        Y.numpy(),
        Y.tolist(),
        NAMED,
        [{"yield": 1.0, "waste": 2.0}, {"yield": 3.0, "waste": torch.nan, "note": "broke"}],
        lambda: frame(NAMED),
    ],
    ids=["array", "list", "dictionary", "dictionaries", "table"],
)
def test_outcomes_by_position_and_by_name_are_the_same(optimizer, y):
    optimizer.tell(POINTS, y() if callable(y) else y)
    assert_close(optimizer.y, Y, equal_nan=True)


def test_one_point_takes_one_outcome_of_each_name(optimizer):
    optimizer.tell({"x": 0.3}, {"yield": 1.0, "waste": 5.0})
    assert optimizer.y.tolist() == [[1.0, 5.0]]


@pytest.mark.parametrize(
    "y",
    [
        [True, False],
        torch.tensor([True, False]),
        torch.tensor([True, False]).numpy(),
        {"objective": [True, False]},
        [{"objective": True}, {"objective": False}],
        lambda: frame({"objective": [True, False]}),
        lambda: frame({"objective": [True, False]})["objective"],
    ],
    ids=["list", "tensor", "array", "dictionary", "dictionaries", "table", "column"],
)
def test_what_passed_is_told_as_true_or_false(y):
    optimizer = sg.Optimizer({"x": sg.Real(0, 1)}, likelihood="bernoulli")
    optimizer.tell(POINTS, y() if callable(y) else y)
    assert optimizer.y.tolist() == [[1.0], [0.0]]
    optimizer.tell({"x": 0.2}, True)
    assert optimizer.y[-1].tolist() == [1.0]


@pytest.mark.parametrize(
    "noise",
    [{"waste": [0.5, 0.7]}, torch.tensor([[0.1, 0.5], [0.1, 0.7]], dtype=torch.float64)],
    ids=["name", "column"],
)
def test_each_outcome_may_have_a_noise_of_its_own(optimizer, noise):
    optimizer.tell(POINTS, [[1.0, 2.0], [3.0, 4.0]], noise_variance=noise)
    constants = optimizer.to_parts()["state"].observations.constants
    assert_close(constants, torch.tensor([[0.1, 0.5], [0.1, 0.7]], dtype=torch.float64))


def test_noise_that_is_known_counts_in_the_model():
    likelihood = Gaussian(0.01, is_learned=False)
    X = torch.linspace(0.0, 1.0, 6, dtype=torch.float64).unsqueeze(-1)

    def predict(noise):
        optimizer = sg.Optimizer([(0.0, 1.0)], likelihood=likelihood, num_initial=2)
        optimizer.tell(X, [0.0, 0.0, 5.0, 0.0, 0.0, 0.1], noise_variance=noise)
        return float(optimizer.predict([[0.4]]).mean)

    assert predict([0.01, 0.01, 100.0, 0.01, 0.01, 0.01]) < 0.3 * predict(0.01)


@pytest.mark.parametrize(
    ("y", "noise", "message"),
    [
        ({"yield": [1.0, 2.0], "wate": [1.0, 2.0]}, None, "'waste', but has 'yield', 'wate'. The outcomes are yield"),
        ([{"price": 1.0}, {"price": 2.0}], None, "y must have an outcome 'yield', but has .*'price'"),
        (NAMED, {"wast": 0.1}, "noise_variance names the outcome 'wast', but the outcomes are"),
    ],
)
def test_names_that_are_wrong_are_named(optimizer, y, noise, message):
    with pytest.raises(OptionError, match=message):
        optimizer.tell(POINTS, y, noise_variance=noise)
    assert not len(optimizer.y)


@pytest.mark.parametrize(
    ("y", "expected"), [([1.0, 2.0, 3.0], None), ([1.0, 2.0, 1.0], True), ([1.0, 2.0, 1.0 + 1e-6], False)]
)
def test_outcomes_that_repeat_have_no_noise(y, expected):
    last = 0.3 if expected is None else 0.1
    points = torch.tensor([[0.1], [0.2], [last]], dtype=torch.float64)
    constants = torch.full((3, 1), torch.nan, dtype=torch.float64)
    known = Observations(
        points, torch.tensor(y, dtype=torch.float64).unsqueeze(-1), constants, points.new_empty(0, 2, 1)
    )
    assert known.repeats is expected
