import copy
import pickle

import numpy as np
import pytest
import torch

from streamgp.errors import ShapeError, ValueRangeError
from streamgp.streaming.rows import Rows, read_inputs, read_rows


def _row(value, c=2, has_count=True):
    return Rows(np.full((1, 3), value), np.full((c, 1), value), np.full(1, value) if has_count else None)


def _appended(values, **options):
    rows = _row(values[0], **options).copy()
    for value in values[1:]:
        rows = rows.append(_row(value, **options))
    return rows


@pytest.mark.parametrize("has_count", [False, True])
def test_rows_are_appended_in_their_order(has_count):
    rows = _appended(np.arange(100.0), has_count=has_count)
    assert rows.num_rows == 100
    for part in (rows.inputs[:, 1], rows.targets[0], rows.targets[1], *([rows.total_count] if has_count else [])):
        assert part.tolist() == list(range(100))


def test_earlier_rows_stay_as_they_are_and_may_go_on_in_other_ways():
    start = _appended(np.arange(10.0))
    one, two = start.append(_row(-1.0)), start.append(_row(-2.0))
    three = one.append(_row(-3.0)).append(_row(-4.0))
    assert start.targets[0].tolist() == list(range(10))
    assert one.targets[0].tolist() == [*range(10), -1.0]
    assert two.inputs[:, 0].tolist() == [*range(10), -2.0]
    assert three.total_count.tolist() == [*range(10), -1.0, -3.0, -4.0]


def test_appending_does_not_copy_all_rows_each_time():
    rows = _appended(np.arange(1000.0))
    later = rows.append(_row(0.0))
    assert np.shares_memory(later.inputs, rows.inputs)
    assert later.inputs.base.nbytes < 2 * later.inputs.nbytes


def test_copies_and_pickles_hold_the_rows_alone():
    rows = _appended(np.arange(40.0))
    for other in (copy.deepcopy(rows), pickle.loads(pickle.dumps(rows)), rows.copy()):
        assert np.array_equal(other.inputs, rows.inputs)
        assert not np.shares_memory(other.inputs, rows.inputs)
        assert vars(other).keys() == {"inputs", "targets", "total_count"}
    assert len(pickle.dumps(rows)) < 1.2 * len(pickle.dumps(rows.copy()))


@pytest.mark.parametrize("kind", [np.array, torch.tensor, list])
def test_arrays_tensors_and_lists_become_rows_of_double_precision(kind):
    rows = read_rows(kind([[1, 2], [3, 4]]), kind([5, 6]), None, num_dims=2, num_outputs=0)
    assert rows.inputs.dtype == rows.targets.dtype == np.float64
    assert rows.inputs.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert rows.targets.tolist() == [[5.0, 6.0]]


def test_rows_that_make_no_sense_are_refused_with_a_sentence():
    X, y = np.ones((2, 3)), np.ones(2)
    with pytest.raises(
        ShapeError, match=r"X must have shape \(n, d\), one row for each observation, but has shape \(3,\)"
    ):
        read_inputs(X[0], num_dims=None)
    with pytest.raises(ShapeError, match="X has 3 columns, but the stream so far had 4"):
        read_inputs(X, num_dims=4)
    with pytest.raises(
        ValueRangeError, match=r"X must be finite, but 1 of its 6 values .* the first at index \(1, 2\)"
    ):
        read_inputs(np.array([[1.0, 1.0, 1.0], [1.0, 1.0, np.nan]]), num_dims=3)
    with pytest.raises(ValueRangeError, match="y must be finite, but 1 of its 2 values"):
        read_rows(X, np.array([1.0, np.inf]), None, num_dims=3, num_outputs=0)
    with pytest.raises(
        ShapeError, match=r"y must have shape \(2, 2\), one value for each row of X, but has shape \(2,\)"
    ):
        read_rows(X, y, None, num_dims=3, num_outputs=2)
    with pytest.raises(ShapeError, match=r"y must have shape \(2,\), one value for each row of inputs \(2, 3\)"):
        read_rows(X, np.ones(3), None, num_dims=3, num_outputs=0)


def test_finite_numbers_whose_sum_overflows_are_read():
    assert read_inputs(np.full((1, 2), 1e308), num_dims=2).tolist() == [[1e308, 1e308]]
