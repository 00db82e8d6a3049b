import pytest

from streamgp.cli.reading.values import read_number


def test_numbers_are_read():
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
