import numpy as np
import pytest

pytest.importorskip("river")

from streamgp.errors import ArgumentTypeError
from streamgp.integrations.river.features import FeatureTable, read_block


def test_values_find_their_columns_in_any_order():
    table = FeatureTable().with_columns(["a", "b"])
    np.testing.assert_array_equal(table.columns(["b", "x", "a"], np.array([[1.0, 2.0, 3.0]])), [[3.0, 1.0]])


def test_missing_values_are_the_mean_of_those_given():
    table = FeatureTable().with_columns(["a", "b"])
    table = table.observe(["a", "b"], np.array([[1.0, 5.0], [2.0, 7.0]])).observe(["a"], np.array([[6.0]]))
    assert table.counts == (3, 2)
    assert table.means == pytest.approx((3.0, 6.0))
    np.testing.assert_allclose(table.columns(["b"], np.array([[0.0]])), [[3.0, 0.0]])


def test_new_names_do_not_depend_on_their_order_and_what_is_no_column_is_counted():
    table = FeatureTable().with_columns(["b"])
    assert table.new_names(["d", "b", 3, "a"]) == table.new_names([3, "a", "b", "d"]) == [3, "a", "d"]
    assert table.observe(["b", "c"], np.ones((4, 2))).num_ignored == 4


def test_rows_without_names_are_no_block():
    with pytest.raises(ArgumentTypeError, match=r"X must be a pandas.DataFrame.*but is a ndarray. Make one with"):
        read_block(np.ones((2, 2)))
