from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from streamgp.errors import DTypeError, ShapeError, ValueRangeError
from streamgp.streams import reading as batches
from streamgp.streams.reading import Batch, read_batch, read_matrix, read_numbers, read_total_count


class AnyEstimator(BaseEstimator):
    pass


def test_parts_of_a_batch_keep_their_numbers_of_trials():
    batch = Batch(np.arange(6.0).reshape(3, 2), np.arange(3), np.array([5.0, 6.0, 7.0]))
    part = batch.take(slice(1, 3))
    assert part.inputs.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert part.total_count.tolist() == [6.0, 7.0]
    assert batch._replace(total_count=None).take(np.array([0])).total_count is None


def test_rows_are_checked_with_our_errors():
    estimator = AnyEstimator()
    batch = read_batch(estimator, [[1, 2], [3, 4]], [1, 2], reset=True, is_numeric=True)
    assert batch.inputs.dtype == np.float64
    with pytest.raises(ValueRangeError, match="NaN"):
        read_batch(estimator, [[np.nan, 1.0]], [1.0], reset=False, is_numeric=True)
    with pytest.raises(ValueRangeError, match="3 features"):
        read_matrix(estimator, [[1.0, 2.0, 3.0]])


@pytest.fixture
def estimator():
    known = AnyEstimator()
    read_batch(known, [[1.0, 2.0], [3.0, 4.0]], [1, 2], reset=True, is_numeric=True)
    return known


@pytest.mark.parametrize("y", [np.array([0.5, 1.5]), np.array([1, 2]), np.array([True, False])])
def test_plain_arrays_pass_as_scikit_learn_would_pass_them(estimator, y):
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    theirs = [read_batch(estimator, X.tolist(), y, reset=False, is_numeric=True), read_matrix(estimator, X.tolist())]
    with patch.object(batches, "validate_data", side_effect=AssertionError):
        ours = [read_batch(estimator, X, y, reset=False, is_numeric=True), read_matrix(estimator, X)]
    assert np.array_equal(ours[0].inputs, theirs[0].inputs)
    assert np.array_equal(ours[0].targets, theirs[0].targets)
    assert ours[0].targets.dtype == theirs[0].targets.dtype
    assert np.array_equal(ours[1], theirs[1])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[np.nan, 1.0]], [1.0], "NaN"),
        ([[1.0, 2.0]], [np.inf], "infinity"),
        ([[1.0, 2.0, 3.0]], [1.0], "3 features"),
        ([1.0, 2.0], [1.0], "2D array"),
        ([[1.0, 2.0]], [1.0, 2.0], "inconsistent numbers of samples"),
        (np.empty((0, 2)), [], "minimum of 1"),
    ],
)
def test_arrays_that_are_not_plain_are_refused_as_before(estimator, X, y, message):
    with pytest.raises(ValueRangeError, match=message):
        read_batch(estimator, np.array(X), np.array(y), reset=False, is_numeric=True)


def test_columns_with_names_are_compared():
    known = AnyEstimator()
    read_batch(known, pd.DataFrame({"a": [1.0], "b": [2.0]}), [1.0], reset=True, is_numeric=True)
    with pytest.warns(UserWarning, match="feature names"):
        read_matrix(known, np.array([[1.0, 2.0]]))


@pytest.mark.parametrize("total_count", [4, [4, 4, 4]])
def test_one_number_of_trials_is_that_of_all_rows(total_count):
    assert read_total_count(total_count, 3).tolist() == [4.0, 4.0, 4.0]
    assert read_total_count(None, 3) is None


def test_numbers_of_trials_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        read_total_count([4, 4], 3)


DAYS = pd.date_range("2024-01-01", periods=2)


@pytest.mark.parametrize(
    ("X", "column"),
    [
        (pd.DataFrame({"when": DAYS}), r"column 'when' \(datetime64"),
        (pd.DataFrame({"load": [1.0, 2.0], "took": DAYS - DAYS[0]}), r"column 'took' \(timedelta64"),
        (pd.DataFrame({"when": DAYS.tz_localize("UTC")}), r"column 'when' \(datetime64"),
        (DAYS.to_numpy()[:, None], r"X \(datetime64"),
    ],
)
def test_dates_are_no_inputs_whatever_their_unit(X, column):
    with pytest.raises(DTypeError, match=f"X must hold numbers. These hold no numbers: {column}.*StreamPreprocessor"):
        read_batch(AnyEstimator(), X, [1.0, 2.0], reset=True, is_numeric=True)
    with pytest.raises(DTypeError, match=column):
        read_matrix(AnyEstimator(), X)


def test_columns_of_text_are_named_with_what_to_do():
    X = pd.DataFrame({"load": [1.0, 2.0], "city": ["Oslo", "Molde"]})
    with pytest.raises(ValueRangeError, match=r"'Oslo' These hold no numbers: column 'city' .*StreamPreprocessor go"):
        read_batch(AnyEstimator(), X, [1.0, 2.0], reset=True, is_numeric=True)


@pytest.mark.parametrize("y", [pd.Series(DAYS), DAYS.to_numpy(), DAYS - DAYS[0]])
def test_dates_are_no_targets(y):
    with pytest.raises(DTypeError, match=r"y must hold numbers, but holds (datetime|timedelta)64.*Turn dates"):
        read_numbers(y, "y")


@pytest.mark.parametrize("y", [[1.0], (1,), pd.Series([1.0]), np.array([1]), [True]])
def test_numbers_are_read_from_lists_and_arrays(y):
    assert read_numbers(y, "y").tolist() == [1.0]
