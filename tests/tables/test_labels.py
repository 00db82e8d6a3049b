from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest

from streamgp.errors import ArgumentTypeError, DTypeError, ValueRangeError
from streamgp.tables.labels import check_kinds, is_missing, plain_dates, read_labels, to_array, to_labels

DAYS = [datetime(2024, 1, 1), datetime(2024, 2, 1, 5, 30, 0, 7)]


def objects(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.parametrize(
    "y",
    [
        objects(DAYS),
        objects([pd.Timestamp(day) for day in DAYS]),
        np.array(DAYS, "datetime64[us]"),
        np.array(DAYS, "datetime64[ns]"),
        pd.Series(DAYS).to_numpy(),
    ],
)
def test_dates_of_all_kinds_are_the_same_labels(y):
    assert to_labels(y) == DAYS
    assert to_array(to_labels(y)).tolist() == DAYS


def test_days_are_dates_and_other_labels_stay():
    assert to_labels(objects([date(2024, 1, 1)])) == to_labels(np.array(["2024-01-01"], "M8[D]")) == DAYS[:1]
    assert to_labels(np.array(["a", "b"])) == ["a", "b"]
    for y in (np.array([1, 2]), objects(["a"]), np.array([])):
        assert plain_dates(y) is y
    assert to_array([]).shape == (0,)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.array(["2024-01-01", "NaT"], "M8[D]"), ValueRangeError, "one is NaT. Leave out rows without a label"),
        (objects([pd.Timestamp(DAYS[0]), pd.NaT]), ValueRangeError, "one is NaT. Leave out rows without a label"),
        (objects([DAYS[0], DAYS[0].replace(tzinfo=UTC)]), ValueRangeError, r"no time zone.*replace\(tzinfo"),
        (np.array([1], "M8[ns]"), ValueRangeError, "no finer than a microsecond.*Round them"),
        (objects([pd.Timestamp(1)]), ValueRangeError, "no finer than a microsecond.*Round them"),
        (np.array(["20000-01-01"], "M8[D]"), ValueRangeError, "in the years 1 to 9999"),
        (np.array([1], "m8[s]"), DTypeError, "durations.*Convert them"),
    ],
)
def test_dates_that_cannot_be_kept_are_refused(y, error, message):
    with pytest.raises(error, match=message):
        plain_dates(y)


def test_dates_do_not_come_with_other_labels():
    check_kinds(DAYS)
    with pytest.raises(ArgumentTypeError, match="or all be dates, but 3 comes with datetime"):
        check_kinds([*DAYS, 3])


def test_labels_are_read_from_lists_and_arrays():
    assert read_labels(["a", "b"]).tolist() == ["a", "b"]
    assert read_labels(np.array([0.0, 2.0])).tolist() == [0.0, 2.0]
    assert read_labels(pd.Series(DAYS)).tolist() == DAYS


@pytest.mark.parametrize("label", [None, float("nan"), np.float32("nan"), np.datetime64("NaT"), pd.NaT, pd.NA])
def test_missing_labels_are_noticed(label):
    assert is_missing(label)


@pytest.mark.parametrize("label", ["", 0, False, np.bool_(False), np.float64(0.0), DAYS[0], ("a", 1)])
def test_other_labels_are_not_missing(label):
    assert not is_missing(label)
