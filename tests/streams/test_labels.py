from datetime import UTC, date, datetime

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from streamgp.errors import DTypeError, ValueRangeError  # noqa: E402
from streamgp.streams.targets import read_label  # noqa: E402

DAY = datetime(2024, 1, 2, 3)
DATES = [pd.Timestamp(DAY), *(np.datetime64(DAY, unit) for unit in ("s", "us", "ns")), DAY]


@pytest.mark.parametrize("label", DATES)
def test_timestamps_of_every_kind_are_one_label(label):
    assert {read_label(label), *map(read_label, pd.Series([label]))} == {DAY}
    assert type(read_label(label)) is datetime


@pytest.mark.parametrize("label", ["a", 1, 1.5, True, (1, "a"), date(2024, 1, 1)])
def test_other_labels_stay(label):
    assert read_label(label) == label
    assert type(read_label(label)) is type(label)


@pytest.mark.parametrize("label", [None, float("nan"), np.float64("nan"), np.datetime64("NaT"), pd.NaT, pd.NA])
def test_missing_labels_are_none(label):
    assert read_label(label) is None


@pytest.mark.parametrize(
    ("label", "error", "message"),
    [
        (DAY.replace(tzinfo=UTC), ValueRangeError, "must have no time zone"),
        (pd.Timestamp(1), ValueRangeError, "no finer than a microsecond"),
        (np.timedelta64(1, "s"), DTypeError, "are durations"),
    ],
)
def test_labels_that_cannot_be_kept_are_refused(label, error, message):
    with pytest.raises(error, match=message):
        read_label(label)
