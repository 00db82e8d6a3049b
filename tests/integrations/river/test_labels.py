from datetime import UTC, date, datetime

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("river")

from streamgp.errors import ArgumentTypeError, DTypeError, ShapeError, ValueRangeError  # noqa: E402
from streamgp.integrations.river.labels import read_label, read_labels  # noqa: E402

DAY = datetime(2024, 1, 2, 3)
DATES = [pd.Timestamp(DAY), *(np.datetime64(DAY, unit) for unit in ("s", "us", "ns")), DAY]


@pytest.mark.parametrize("label", DATES)
def test_timestamps_of_every_kind_are_one_label(label):
    assert {read_label(label), *read_labels(pd.Series([label])), *read_labels([label])} == {DAY}
    assert type(read_label(label)) is datetime
    assert type(read_labels(pd.Series([label]))[0]) is datetime


@pytest.mark.parametrize("label", ["a", 1, 1.5, True, (1, "a"), date(2024, 1, 1)])
def test_other_labels_stay(label):
    for read in (read_label(label), *read_labels([label, 3])[:1]):
        assert read == label
        assert type(read) is type(label)


def test_labels_of_a_series_are_plain():
    assert read_labels(pd.Series(["a", "b"], dtype="category")) == ["a", "b"]
    assert [type(label) for label in read_labels(pd.Series([True, False], dtype="boolean"))] == [bool, bool]
    assert read_label(np.int64(3)) == 3


@pytest.mark.parametrize("label", [None, float("nan"), np.float64("nan"), np.datetime64("NaT"), pd.NaT, pd.NA])
def test_missing_labels_are_refused(label):
    with pytest.raises(ValueRangeError, match=r"A label must not be missing.*Leave out rows"):
        read_label(label)
    with pytest.raises(ValueRangeError, match=r"must not be missing.*Leave out rows"):
        read_labels(pd.Series([label, label]))


@pytest.mark.parametrize(
    ("label", "error", "message"),
    [
        ([1], ArgumentTypeError, r"dictionaries take for a key, but is \[1\]. Convert it"),
        (DAY.replace(tzinfo=UTC), ValueRangeError, "must have no time zone"),
        (pd.Timestamp(1), ValueRangeError, "no finer than a microsecond"),
        (np.timedelta64(1, "s"), DTypeError, "are durations"),
    ],
)
def test_labels_that_cannot_be_kept_are_refused(label, error, message):
    with pytest.raises(error, match=message):
        read_label(label)


def test_a_table_is_no_column_of_labels():
    with pytest.raises(ShapeError, match=r"one for each row of X, but has shape \(2, 1\)"):
        read_labels(pd.DataFrame({"y": ["a", "b"]}))
