import numpy as np
import pytest
import torch

from streamgp.errors import ShapeError, SupportError, ValueRangeError
from streamgp.likelihoods import Poisson, Preference
from streamgp.training.data import check_points, read_rows, to_observed

X = torch.rand(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_arrays_of_numpy_are_rows_too():
    rows = read_rows(np.zeros((4, 2), dtype=np.float32), np.arange(4.0, dtype=np.float32), None)
    assert rows.inputs.dtype == torch.float32
    assert to_observed(rows, dtype=torch.float32).targets.dtype == torch.float64


def test_whole_numbers_become_counts_of_the_dtype_of_the_inputs():
    rows = read_rows(X, torch.arange(4), Poisson())
    assert rows.targets.dtype == X.dtype
    with pytest.raises(SupportError, match="whole numbers"):
        read_rows(X, torch.full((4,), 0.5, dtype=torch.float64), Poisson())


def test_comparisons_are_pairs_of_inputs():
    pairs = torch.stack([X, X + 1], dim=1)
    observed = to_observed(read_rows(pairs, torch.ones(4, dtype=torch.float64), Preference()), dtype=torch.float64)
    assert torch.equal(observed.inputs, X)
    assert torch.equal(observed.others, X + 1)
    assert observed.all_inputs.shape == (8, 2)


@pytest.mark.parametrize("shape", [(4,), (0, 2), (2, 4, 2)])
def test_inputs_that_are_no_table_are_refused(shape):
    with pytest.raises(ShapeError, match=r"X must have shape \(n, d\)"):
        read_rows(torch.zeros(shape, dtype=torch.float64), torch.zeros(4, dtype=torch.float64), None)


def test_targets_with_an_output_axis_and_points_of_another_dimension_are_refused():
    with pytest.raises(ShapeError, match=r"Drop a trailing output axis with y.squeeze\(-1\)"):
        read_rows(X, torch.zeros(4, 1, dtype=torch.float64), None)
    with pytest.raises(ValueRangeError, match="y must be finite"):
        read_rows(X, torch.full((4,), torch.nan, dtype=torch.float64), None)
    with pytest.raises(ShapeError, match="inducing must have 2 columns"):
        check_points(torch.zeros(3, 1, dtype=torch.float64), like=X)
