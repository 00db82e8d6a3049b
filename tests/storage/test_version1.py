"""Files that were written before there was one codec; `data/version1` has one of each kind."""

import json
from pathlib import Path

import pytest
import torch

import streamgp as sg

DATA = Path(__file__).parent / "data" / "version1"
EXPECTED = json.loads((DATA / "expected.json").read_text())
PROBE = torch.linspace(0.1, 0.9, 6, dtype=torch.float64).reshape(3, 2)


@pytest.mark.parametrize("name", ["sparse_gp_matern", "sparse_gp_nested", "sparse_gp_float32"])
def test_a_sparse_gp_predicts_as_it_did(name):
    gp = sg.load(DATA / f"{name}.gp")
    prediction = gp.predict(PROBE.to(gp.inducing_points))
    rounding = 100 * torch.finfo(gp.inducing_points.dtype).eps
    for moment in ("mean", "variance"):
        expected = torch.tensor(EXPECTED[name][moment], dtype=gp.inducing_points.dtype)
        torch.testing.assert_close(getattr(prediction, moment), expected, rtol=rounding, atol=rounding)


@pytest.mark.slow
def test_an_optimizer_has_its_data_and_settings():
    optimizer = sg.load(DATA / "optimizer.opt")
    assert isinstance(optimizer, sg.Optimizer)
    assert optimizer.ask(1).shape == (1, 2)
    X, y = optimizer._state.observations.points, optimizer._state.observations.y
    torch.testing.assert_close(y, torch.stack([-(X**2).sum(-1), X.sum(-1) - 1.0], -1))
    assert len(X) == 6


@pytest.mark.slow
def test_a_trust_region_goes_on():
    optimizer = sg.load(DATA / "turbo.opt")
    assert isinstance(optimizer, sg.TurboOptimizer)
    X, y = optimizer._state.observations.points, optimizer._state.observations.y
    torch.testing.assert_close(y[:, 0], -(X**2).sum(-1))
    assert optimizer.region.num_successes == 1
    assert optimizer.ask(1).shape == (1, 2)


@pytest.mark.slow
def test_a_pool_learner_has_its_data_and_settings():
    learner = sg.load(DATA / "pool.learner")
    assert isinstance(learner, sg.PoolLearner)
    assert len(learner._state.observations.points) == 6
    assert not set(learner.ask(1).tolist()) & set(learner._state.observations.points.tolist())
