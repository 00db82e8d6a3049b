import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

import streamgp as sg
from streamgp.errors import ShapeError, UnsupportedError, ValueRangeError
from streamgp.optimizers import Search

SMALL = Search(raw_samples=16)
BOX = [(-5.0, 10.0), (0.0, 15.0)]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def told(**options):
    optimizer = sg.Optimizer(BOX, search=SMALL, **options)
    X = optimizer.ask(7)
    optimizer.tell(X[:6], X[:6].sum(-1))
    return optimizer


@pytest.mark.parametrize(("maximize", "expected"), [(True, [1.0, 3.0, 3.0, 4.0]), (False, [1.0, 1.0, -2.0, -2.0])])
def test_the_best_so_far_is_drawn_over_all_evaluations(maximize, expected):
    optimizer = sg.Optimizer(BOX, maximize=maximize)
    optimizer.tell([[0.0, 1.0]] * 5, [float("nan"), 1.0, 3.0, -2.0, 4.0])
    axes = optimizer.plot_progress()
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert lines["best so far"].get_ydata().tolist() == expected
    assert lines["best so far"].get_xdata().tolist() == [2, 3, 4, 5]
    assert axes.get_xlabel() == "evaluation"


def test_only_what_is_feasible_counts_as_best():
    optimizer = sg.Optimizer(BOX, constraints=[sg.Constraint(lower=0.0, upper=1.0)])
    optimizer.tell([[0.0, 1.0]] * 3, [[1.0, 0.5], [5.0, 2.0], [4.0, -1.0]])
    _, axes = plt.subplots()
    assert optimizer.plot_progress(axes) is axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert lines["best so far"].get_ydata().tolist() == [1.0, 1.0, 1.0]
    assert lines["not feasible"].get_ydata().tolist() == [5.0, 4.0]


def test_a_run_without_data_is_drawn_empty():
    assert sg.Optimizer(BOX).plot_progress().get_ylabel() == "objective"


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["qkg", "qnei", "gibbon"])
def test_the_surface_is_drawn_with_the_points(acquisition):
    optimizer = told(acquisition=acquisition)
    optimizer.tell_failure([[0.0, 0.0]])
    axes = optimizer.plot_acquisition(num_steps=5)
    labels = {line.get_label(): len(line.get_xdata()) for line in axes.get_lines()}
    assert labels == {"known": 6, "failed": 1, "pending": 1}
    assert axes.get_xlim() == (-5.0, 10.0)


def test_what_cannot_be_drawn_is_refused_with_a_sentence():
    with pytest.raises(ShapeError, match="over the two dimensions of a box, but there are 1"):
        sg.Optimizer([(0.0, 1.0)]).plot_acquisition()
    with pytest.raises(UnsupportedError, match=r"The rule Thompson has no value .* such as NoisyExpectedImprovement"):
        told(acquisition="thompson").plot_acquisition()
    with pytest.raises(ValueRangeError, match="num_steps must be at least 2"):
        told().plot_acquisition(num_steps=1)
    with pytest.raises(ValueRangeError, match="Nothing is known yet"):
        sg.Optimizer(BOX).plot_acquisition()
