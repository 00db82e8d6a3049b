from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from streamgp.errors import ValueRangeError
from streamgp.tables.values import (
    check_decimal_points,
    date_format,
    date_formats,
    is_missing,
    read_number,
    to_date,
    to_number,
    zones_of,
)


@pytest.mark.parametrize("value", [None, "", " NA ", "n/a", "?", "null", float("nan"), "NaN"])
def test_words_for_nothing_are_missing(value):
    assert is_missing(value)


def test_other_values_are_not():
    assert not any(map(is_missing, (0, "0", False, "no", [])))


@pytest.mark.parametrize(("value", "number"), [("1e3", 1000.0), (2, 2.0), ("1_0", None), ("x", None), ([], None)])
def test_numbers_are_read(value, number):
    assert to_number(value) == number


@pytest.mark.parametrize(
    ("values", "format"),
    [
        (["2024-03-01", "2024-03-02T10:00:00Z"], "iso"),
        (["01.03.2024"], "%d.%m.%Y"),
        (["03/01/2024", "12/31/2024"], "%m/%d/%Y"),
        (["03/01/2024", "31/12/2024"], "%d/%m/%Y"),
        (["2024", "2025"], None),
        (["2024-03-01", "soon"], None),
        ([], None),
    ],
)
def test_a_format_fits_all_values(values, format):
    assert date_format(values) == format


def test_dates_are_dates():
    assert to_date(date(2024, 3, 1), "iso") == datetime(2024, 3, 1)
    assert to_date("2024-03-01T12:30:00+02:00", "iso") == datetime(2024, 3, 1, 12, 30)
    assert to_date(3.5, "iso") is None


def test_decimal_commas_are_refused_with_the_remedy():
    with pytest.raises(ValueRangeError, match=r"'speed' holds numbers with decimal commas, such as '1,5'.*1\.5"):
        check_decimal_points([" 1,5", "2", "-3,25e1"], "speed")


@pytest.mark.parametrize("values", [["1.5", "2"], ["a,b", "1,2"], ["1,2,3"], [], [1.5, None]])
def test_other_values_have_no_decimal_commas(values):
    check_decimal_points(values, "speed")


@pytest.mark.parametrize("value", [Decimal("0.5"), Fraction(1, 2), np.float32(0.5), np.array(0.5)[()]])
def test_numbers_of_other_types_are_numbers(value):
    assert to_number(value) == 0.5


def test_dates_of_numpy_are_dates_and_not_numbers():
    for unit in ("D", "us", "ns"):
        assert to_date(np.datetime64("2024-03-01", unit), "iso") == datetime(2024, 3, 1)
        assert to_number(np.datetime64("2024-03-01", unit)) is None


def test_time_zones_are_left_out_or_brought_to_utc():
    east = datetime(2024, 3, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    for value in (east, "2024-03-01T01:00+02:00"):
        assert to_date(value, "iso") == datetime(2024, 3, 1, 1)
        assert to_date(value, "iso", is_utc=True) == datetime(2024, 2, 29, 23)
    assert to_date("2024-03-01", "iso", is_utc=True) == datetime(2024, 3, 1)
    assert to_date(datetime.max.replace(tzinfo=timezone(timedelta(hours=-2))), "iso", is_utc=True) is None
    assert zones_of([east, "2024-03-01", "?", datetime.now(UTC)], "iso") == {timedelta(hours=2), None, timedelta()}


def test_all_formats_that_fit_as_many_dates_are_named():
    assert date_formats(["01/02/2024", "03/02/2024"]) == ["%m/%d/%Y", "%d/%m/%Y"]
    assert date_formats(["01/02/2024", "13/02/2024"]) == ["%d/%m/%Y"]
    assert date_formats(["soon"]) == date_formats([]) == []


def test_commas_that_may_stand_for_thousands_are_not_called_decimal():
    with pytest.raises(ValueRangeError, match=r"such as '1,000', which may stand for 1000 or for 1\.000\."):
        check_decimal_points(["1,000", "999"], "price")
    with pytest.raises(ValueRangeError, match=r"decimal commas, such as '1,000'"):
        check_decimal_points(["1,000", "2,5"], "price")


def test_the_number_of_a_field_is_read():
    assert read_number({"x": "1.5"}, "x", "target") == 1.5


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        ("", "the target 'x' is missing"),
        ("NA", "the target 'x' is missing"),
        ("high", "the target 'x' is 'high' and not a number"),
        ("inf", "the target 'x' is not finite"),
        ("1e200", "the target 'x' is 1e+200, and numbers beyond 1e+150 cannot be learned from"),
    ],
)
def test_what_is_wrong_with_others_is_said(cell, complaint):
    assert read_number({"x": cell}, "x", "target") == complaint


def test_a_column_that_is_not_there_is_missing():
    assert read_number({}, "x", "noise") == "the noise 'x' is missing"
