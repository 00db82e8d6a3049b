from datetime import date, datetime

import pytest

from streamgp.errors import ValueRangeError
from streamgp.streaming.fields import check_decimal_points, date_format, is_missing, to_date, to_number


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
