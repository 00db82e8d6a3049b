import matplotlib
import pytest
import torch
from matplotlib.figure import Figure

import streamgp as sg
from streamgp.acquisition import NoisyHypervolumeImprovement, Search
from streamgp.errors import OptionError, UnsupportedError

matplotlib.use("Agg")
BOX = [(0.0, 1.0), (0.0, 1.0)]
GOALS = (sg.Objective("yield"), sg.Objective("waste", maximize=False))
SMALL = Search(num_restarts=1, raw_samples=16, max_iterations=5)


def outcomes(X):
    """No point is better in both than those between 0.2 and 0.7 on the diagonal."""
    return torch.stack([-(X - 0.7).square().sum(-1), (X - 0.2).square().sum(-1), X[:, 0]], dim=-1)


@pytest.fixture(scope="module")
def told():
    optimizer = sg.Optimizer(
        BOX,
        objectives=GOALS,
        constraints=[sg.Constraint(upper=0.5)],
        acquisition=NoisyHypervolumeImprovement(16),
        num_initial=8,
        search=SMALL,
    )
    X = optimizer.ask(12)
    optimizer.tell(X, outcomes(X))
    return optimizer


@pytest.mark.slow
def test_no_point_of_the_set_beats_another_and_all_others_are_beaten(told):
    found = told.best()
    score = found.mean * torch.tensor([1.0, -1.0])
    for one in score:
        assert not ((score >= one).all(-1) & (score > one).any(-1)).any()
    assert found.X[:, 0].max() <= 0.5
    assert (found.probability_feasible >= 0.9).all()
    assert found.std.shape == found.observed.shape == (len(found.X), 2)


def test_points_between_both_optima_are_suggested(told, tmp_path):
    told.save(tmp_path / "run")
    X = told.ask()
    assert ((X > 0.1) & (X < 0.8)).all()
    assert torch.equal(sg.load(tmp_path / "run").ask(), X)
    told.cancel()


def test_the_set_is_drawn(told):
    axes = Figure().subplots()
    assert told.plot_pareto(axes) is axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("yield", "waste")


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"objectives": GOALS, "acquisition": "qkg"}, UnsupportedError, "knows one objective, but there are 2"),
        ({"objectives": GOALS, "maximize": False}, OptionError, "Give maximize and likelihood to each"),
        ({"objectives": [GOALS[0]] * 2}, OptionError, "Objectives need different names"),
        (
            {"objectives": [GOALS[0], sg.Objective("taste", likelihood="preference")]},
            UnsupportedError,
            "Comparisons cannot be one of several",
        ),
    ],
)
def test_objectives_that_make_no_sense_are_refused(options, error, sentence):
    with pytest.raises(error, match=sentence):
        sg.Optimizer(BOX, **options)
