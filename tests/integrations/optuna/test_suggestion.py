"""A suggestion is a valid point, and in a finite space the best of all."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.testing import assert_close

from streamgp.optimizers import Search
from streamgp.optimizers.acquisitions import improvement_function
from streamgp.optimizers.decision import Decision, refitted
from streamgp.optimizers.settings import Settings
from streamgp.optimizers.state import State
from streamgp.testing.tolerances import tolerance

distributions = pytest.importorskip("optuna.distributions", reason="needs the extra streamgp[optuna]")

from streamgp.integrations.optuna.space import SnapInputs, Space  # noqa: E402 # after the check for the extra
from streamgp.integrations.optuna.suggestion import suggest_point  # noqa: E402
from streamgp.models import OnlineGP  # noqa: E402

SEARCH = Search(num_restarts=2, raw_samples=16, max_iterations=10, num_fantasies=8, num_samples=16)


def settings_of(space, acquisition="qnei"):
    return Settings.read(
        [(0.0, 1.0)] * space.num_columns,
        likelihood="gaussian",
        maximize=True,
        constraints=(),
        acquisition=acquisition,
        num_initial=1,
        num_inducing=20,
        kernel=None,
        refit="always",
        search=SEARCH,
        seed=0,
    )


def observed(space, rng, num_points, *, function):
    X = space.snap(torch.rand(num_points, space.num_columns, generator=rng, dtype=torch.float64))
    y = torch.tensor([[function(space.decode(one))] for one in X], dtype=torch.float64)
    return State(X, y, X.new_empty(0, 2, space.num_columns), X[:0])


def improvement(state, space, settings, *, seed):
    decision = Decision.make(refitted(state, settings), settings)
    model = OnlineGP(decision.model.gps, decision.model.likelihoods, input_transform=SnapInputs(space))
    baseline = torch.unique(decision.baseline, dim=0)
    return improvement_function("qnei", replace(decision, model=model, baseline=baseline), SEARCH, seed)


@pytest.mark.slow
def test_in_a_small_finite_space_no_other_point_has_a_better_acquisition_value(rng):
    space = Space.read(
        {
            "n": distributions.IntDistribution(0, 9),
            "m": distributions.IntDistribution(1, 16, log=True),
            "c": distributions.CategoricalDistribution(("a", "b", "c")),
        }
    )
    state = observed(space, rng, 8, function=lambda p: -((p["n"] - 7) ** 2) - 0.1 * p["m"] + 5 * (p["c"] == "b"))
    settings = settings_of(space)
    point = suggest_point(state, space, settings, seed=3)
    function = improvement(state, space, settings, seed=3)
    rows = product(range(10), range(1, 17), "abc")
    points = torch.tensor([space.encode(dict(zip("nmc", row, strict=True))) for row in rows], dtype=torch.float64)
    with torch.no_grad():
        best = function(points.unsqueeze(-2)).max()
        assert_close(function(point.reshape(1, 1, -1)).squeeze(0), best, **tolerance(torch.float64))


@pytest.mark.slow
def test_in_a_large_space_no_change_of_one_discrete_parameter_is_better(rng):
    space = Space.read(
        {
            "x": distributions.FloatDistribution(0.0, 1.0),
            "n": distributions.IntDistribution(0, 50),
            "c": distributions.CategoricalDistribution(("a", "b", "c")),
        }
    )
    state = observed(space, rng, 12, function=lambda p: -(((p["n"] - 33) / 9) ** 2) - p["x"] + (p["c"] == "b"))
    settings = settings_of(space)
    point = suggest_point(state, space, settings, seed=3)
    function = improvement(state, space, settings, seed=3)
    with torch.no_grad():
        others = function(space.neighbors(point).unsqueeze(-2))
        assert function(point.reshape(1, 1, -1)) >= others.max()


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["qnei", "qei", "qkg"])
def test_a_suggestion_is_valid_and_away_from_what_is_awaited(rng, acquisition):
    space = Space.read(
        {
            "x": distributions.FloatDistribution(0.0, 1.0),
            "n": distributions.IntDistribution(0, 30),
            "c": distributions.CategoricalDistribution(("a", "b")),
        }
    )
    state = observed(space, rng, 8, function=lambda p: -((p["n"] - 20) ** 2) / 100 - (p["x"] - 0.4) ** 2)
    first = suggest_point(state, space, settings_of(space, acquisition), seed=0)
    assert_close(space.snap(first), first, **tolerance(torch.float64))
    waiting = replace(state, pending=first.unsqueeze(0))
    second = suggest_point(waiting, space, settings_of(space, acquisition), seed=0)
    assert (second - first).abs().max() > 5e-3


@pytest.mark.slow
def test_a_full_space_is_suggested_from_again(rng):
    space = Space.read({"c": distributions.CategoricalDistribution(("a", "b"))})
    state = observed(space, rng, 6, function=lambda p: float(p["c"] == "a"))
    state = replace(state, pending=torch.eye(2, dtype=torch.float64))
    point = suggest_point(state, space, settings_of(space), seed=0)
    assert space.decode(point)["c"] in ("a", "b")
