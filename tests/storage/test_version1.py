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
