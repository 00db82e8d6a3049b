"""Condition numbers along paths, beside those of NumPy on matrices made by hand."""

import json

import numpy as np
import pytest
import torch

from paper.schema.configuration import read_configuration
from paper.studies.condition_numbers import STUDY, ConditionSettings, log10_condition
from streamgp.testing.tolerances import judgement, within

TINY = ConditionSettings(
    num_points=20, num_inducing=8, objective="pll", num_candidates=30, num_paths=3, depth=4, length=0.2
)


@pytest.mark.slow
@pytest.mark.parametrize("method", STUDY.methods)
def test_there_is_a_number_for_each_path_and_depth(method):
    outcome = STUDY.run("rover", method, 0, TINY)
    table = np.array(outcome["log10_condition"])
    assert table.shape == (3, 5)
    # Before the first step all paths have the same matrix.
    assert len(set(table[:, 0])) == 1
    # A principal submatrix is at least as well conditioned (interlacing of eigenvalues), to the digits that are kept.
    assert (np.diff(table, axis=1) > -2e-3).all()
    assert (table >= 0.0).all()
    assert (table <= 16.0).all()
    assert ("log10_inducing" in outcome) == (method == "conditioned")
    json.dumps(outcome, allow_nan=False)


def test_condition_numbers_are_those_of_numpy(rng):
    root = torch.randn(7, 7, generator=rng, dtype=torch.float64)
    matrix = root @ root.mT
    assert log10_condition(matrix) == pytest.approx(
        np.log10(np.linalg.cond(matrix.numpy())), **within(judgement(relative=1e-3))
    )


def test_matrices_without_rows_are_perfectly_conditioned_and_singular_ones_not_beyond_rounding():
    assert log10_condition(torch.zeros(0, 0, dtype=torch.float64)) == 0.0
    assert log10_condition(torch.ones(3, 3, dtype=torch.float64)) > 15.0
    assert log10_condition(torch.zeros(2, 2, dtype=torch.float64)) == pytest.approx(
        15.65, **within(judgement(absolute=0.01))
    )


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_settings_can_be_read(scale):
    assert read_configuration(STUDY, scale).num_trials >= 5
