"""The optimizer whose trust regions start where a tree says."""

import pytest
import torch

import streamgp as sg
from paper.lamcts import LaMCTSOptimizer, PartitionSettings
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, StreamGPError, ValueRangeError
from streamgp.optimizers import RegionRules

BOUNDS = torch.tensor([[-2.0, 0.0, 10.0], [2.0, 1.0, 30.0]], dtype=torch.float64)


def bowl(X):
    unit = (X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    return -(unit - 0.3).square().sum(-1)


def make(seed=0, **options):
    partition = PartitionSettings(leaf_size=5, num_start=6)
    rules = RegionRules(failure_tolerance=2, min_length=0.6)
    defaults = {"num_initial": 8, "partition": partition, "rules": rules, "num_inducing": 15, "seed": seed}
    return LaMCTSOptimizer(BOUNDS, **(defaults | options))


def drive(optimizer, num_evaluations, function=bowl, q=4):
    while len(optimizer.y) < num_evaluations:
        X = optimizer.ask(q)
        optimizer.tell(X, function(X))
    return optimizer


def test_the_initial_design_is_a_latin_hypercube():
    optimizer = make()
    X = optimizer.ask(8)
    unit = (X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    assert ((8 * unit).floor().sort(0).values == torch.arange(8.0).double().unsqueeze(-1)).all()


@pytest.mark.slow
def test_runs_start_from_a_tree_stay_in_the_box_and_repeat_by_the_seed():
    first, second = drive(make(), 40), drive(make(), 40)
    assert torch.equal(first.X, second.X)
    assert first.num_runs >= 2
    assert ((BOUNDS[0] - 1e-9 <= first.X) & (BOUNDS[1] + 1e-9 >= first.X)).all()
    assert first.tree().children
    # Random points of the cube have a median of about -0.3; 40 of them a best of about -0.02 in the median.
    assert float(first.y.max()) > -0.01


@pytest.mark.thorough
def test_the_peak_of_a_bowl_is_found():
    optimizer = make(rules=RegionRules(failure_tolerance=2, min_length=0.2))
    # Random points of the cube have a median of about -0.3; 40 of them a best of about -0.02 in the median.
    assert float(drive(optimizer, 40, q=2).y.max()) > -0.02


@pytest.mark.slow
def test_small_outcomes_can_be_wanted_and_failures_told():
    optimizer = make(maximize=False)

    def function(X):
        y = -bowl(X)
        y[0] = torch.nan
        return y

    drive(optimizer, 14, function)
    known = optimizer.y[optimizer.y.isfinite()]
    assert float(known.min()) < 0.2
    assert optimizer.num_runs >= 1


@pytest.mark.parametrize("num_told", [3, 10, pytest.param(18, marks=pytest.mark.thorough)])
def test_a_saved_search_goes_on_as_it_would_have(tmp_path, num_told):
    """In the initial design, in that of a run, and in a trust region with a model."""
    optimizer = make(num_initial=6)
    while len(optimizer.y) < num_told:
        X = optimizer.ask(1)
        optimizer.tell(X, bowl(X))
    optimizer.save(tmp_path / "search")
    other = sg.load(tmp_path / "search")
    assert isinstance(other, LaMCTSOptimizer)
    assert isinstance(LaMCTSOptimizer.load(tmp_path / "search"), LaMCTSOptimizer)
    for _ in range(3):
        X = optimizer.ask(1)
        assert torch.equal(other.ask(1), X)
        optimizer.tell(X, bowl(X))
        other.tell(X, bowl(X))
    assert other.num_runs == optimizer.num_runs
    assert torch.equal(other.y, optimizer.y)


def test_bad_input_is_refused_and_changes_nothing():
    with pytest.raises(ArgumentTypeError, match="partition must be"):
        LaMCTSOptimizer(BOUNDS, partition={"leaf_size": 3})
    with pytest.raises(StreamGPError):
        make(model="linear")
    optimizer = make()
    with pytest.raises(ShapeError, match="a row for each of the 1 points"):
        optimizer.tell(BOUNDS.mean(0, keepdim=True), torch.zeros(2))
    with pytest.raises((OptionError, StreamGPError)):
        optimizer.ask(0)
    assert len(optimizer.y) == 0
    with pytest.raises(ValueRangeError, match="no outcome yet by which to cut the box"):
        optimizer.tree()
