import pytest
import torch

from streamgp.loops.abstract_parameter import NumberGrid

GRIDS = [
    NumberGrid(0.0, 1.0, 0.1, is_log=False),
    NumberGrid(2.0, 9.0, 2.0, is_log=False),  # whose range is no multiple of the step
    NumberGrid(1.0, 64.0, 1.0, is_log=True),
    NumberGrid(1.0, 1000.0, 1.0, is_log=False),
]


@pytest.mark.parametrize("grid", GRIDS)
def test_every_number_comes_back_from_its_position(grid):
    columns = grid.all_columns()
    assert columns.shape == (grid.num_values, 1)
    assert bool((columns.diff(dim=0) > 0).all())
    assert bool(((columns > 0) & (columns < 1)).all())
    values = [grid.decode(column) for column in columns]
    assert values == sorted(set(values))
    assert values[0] == grid.low
    assert values[-1] <= grid.high
    for value, column in zip(values, columns, strict=True):
        assert grid.encode(value) == pytest.approx(column.tolist())


@pytest.mark.parametrize("grid", GRIDS)
def test_any_position_is_moved_to_the_nearest_number_once(grid, rng):
    columns = torch.rand(50, 1, generator=rng, dtype=torch.float64)
    snapped = grid.snap(columns)
    assert torch.equal(grid.snap(snapped), snapped)
    known = set(grid.all_columns().flatten().tolist())
    assert set(snapped.flatten().tolist()) <= known


@pytest.mark.parametrize("grid", GRIDS)
def test_alternatives_are_other_numbers(grid):
    here = grid.all_columns()[1]
    others = grid.alternatives(here)
    assert 0 < len(others) < grid.num_values
    assert not bool((others == here).any())
    assert torch.equal(grid.snap(others), others)
