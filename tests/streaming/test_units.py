import numpy as np
import pytest
import torch
from torch.testing import assert_close

from streamgp.streaming.rows import Rows
from streamgp.streaming.units import Units
from streamgp.testing.tolerances import rounding


def _rows(rng, n=40):
    X = 5.0 + 3.0 * torch.randn(n, 2, generator=rng, dtype=torch.float64)
    return Rows(X.numpy(), 100.0 + 10.0 * torch.randn(1, n, generator=rng, dtype=torch.float64).numpy())


def test_rows_get_zero_mean_and_unit_variance(rng):
    rows = _rows(rng)
    scaled = Units.of(rows, is_target_scaled=True).rows(rows)
    for values in (scaled.inputs.T, scaled.targets):
        assert_close(values.mean(-1), np.zeros_like(values[:, 0]), **rounding(torch.float64, scale=10.0))
        assert_close(values.std(-1), np.ones_like(values[:, 0]))


def test_targets_stay_where_they_are_not_scaled(rng):
    rows = _rows(rng)
    assert np.array_equal(Units.of(rows, is_target_scaled=False).rows(rows).targets, rows.targets)


def test_columns_that_are_constant_are_shifted_only():
    rows = Rows(np.full((20, 1), 1e6), np.full((1, 20), 3.0))
    units = Units.of(rows, is_target_scaled=True)
    assert units.input_scale.tolist() == [1.0]
    assert units.target_scale.tolist() == [[1.0]]


def test_of_few_rows_the_scale_of_targets_is_taken_wider(rng):
    rows = _rows(rng)
    few = Units.of(rows.part(0, 2), is_target_scaled=True)
    spread = rows.targets[:, :2].std()
    assert float(few.target_scale) >= 2.0 * float(spread)
    assert float(Units.of(rows.part(0, 1), is_target_scaled=True).target_scale) >= 0.1 * float(rows.targets[0, 0])


def test_inputs_farther_away_than_the_range_is_wide_are_outside():
    units = Units.of(Rows(np.array([[0.0], [1.0]]), np.zeros((1, 2))), is_target_scaled=True)
    assert units.num_outside(np.array([[-1.1], [-0.9], [0.5], [1.9], [2.1]])) == 2


def test_more_outputs_have_the_units_of_the_first(rng):
    units = Units.of(_rows(rng), is_target_scaled=True)
    assert units.for_outputs(1) is units
    wider = units.for_outputs(3)
    assert torch.equal(wider.target_shift, units.target_shift.expand(3, 1))
    assert torch.equal(wider.input_scale, units.input_scale)


@pytest.mark.parametrize("scale", [2.0**-200, 2.0**-60, 2.0**200])
def test_units_follow_the_scale_of_inputs_and_targets(rng, scale):
    rows = _rows(rng)
    scaled = Rows(scale * rows.inputs, scale * rows.targets)
    expected = Units.of(rows, is_target_scaled=True).rows(rows)
    found = Units.of(scaled, is_target_scaled=True).rows(scaled)
    assert np.array_equal(found.inputs, expected.inputs)
    assert np.array_equal(found.targets, expected.targets)
