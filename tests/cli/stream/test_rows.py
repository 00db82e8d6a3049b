import pytest

from streamgp.cli.reading.lines import Position
from streamgp.cli.reading.records import Record
from streamgp.cli.stream.rows import Columns, Row, choose_columns, choose_likelihood, read_row
from streamgp.errors import OptionError

COLUMNS = Columns(("a", "b"), "y", None)
TRIALS = Columns(("a",), "y", "n")


def record(**fields):
    return Record(7, Position(7, 1), fields)


def test_columns_are_all_but_the_target():
    assert choose_columns(["a", "y", "b"], "y", None) == COLUMNS
    assert choose_columns(["a", "n", "y", "b"], "y", ["b"], totals="n") == Columns(("b",), "y", "n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((["a", "b"], "y", None), "no column 'y' for the target. The columns are 'a', 'b'"),
        ((["a", "y"], "y", ["a", "c"]), "no column 'c' for the feature"),
        ((["y"], "y", None), "There are no features"),
        ((["a", "y"], "y", ["a", "y"]), r"columns \['y'\] are used twice"),
    ],
)
def test_wrong_columns_are_refused(arguments, sentence):
    with pytest.raises(OptionError, match=sentence):
        choose_columns(*arguments)


@pytest.mark.parametrize(
    "fields", [{"a": "1", "b": " -2e3 ", "y": "0.5"}, {"a": 1, "b": -2000.0, "y": 0.5, "c": "more"}]
)
def test_numbers_are_read(fields):
    assert read_row(record(**fields), COLUMNS, "gaussian") == Row(7, Position(7, 1), (1.0, -2000.0), 0.5)


@pytest.mark.parametrize(("value", "label"), [(" cat ", "cat"), (1, "1"), (True, "true"), ("1", "1"), (2.5, "2.5")])
def test_labels_are_texts(value, label):
    assert read_row(record(a=1, b=2, y=value), COLUMNS, "classes").target == label


@pytest.mark.parametrize(
    ("fields", "issue"),
    [
        ({"a": "", "b": 1, "y": 1}, "the feature 'a' is missing"),
        ({"a": 1, "y": 1}, "the feature 'b' is missing"),
        ({"a": "NaN", "b": 1, "y": 1}, "the feature 'a' is missing"),
        ({"a": float("nan"), "b": 1, "y": 1}, "the feature 'a' is missing"),
        ({"a": 1, "b": "red", "y": 1}, "the feature 'b' is 'red' and not a number"),
        ({"a": 1, "b": "1_0", "y": 1}, "the feature 'b' is '1_0' and not a number"),
        ({"a": 1, "b": [1], "y": 1}, "the feature 'b' is [1] and not a number"),
        ({"a": "inf", "b": 1, "y": 1}, "the feature 'a' is not finite"),
        ({"a": 10**400, "b": 1, "y": 1}, "the feature 'a' is not finite"),
        ({"a": 1, "b": 1, "y": None}, "the target 'y' is missing"),
        ({"a": 1, "b": 1, "y": "high"}, "the target 'y' is 'high' and not a number"),
        ({"a": 1, "b": 1, "y": "-inf"}, "the target 'y' is not finite"),
    ],
)
def test_a_bad_value_is_named(fields, issue):
    assert read_row(record(**fields), COLUMNS, "gaussian") == issue


@pytest.mark.parametrize("value", [None, "", "null", [1]])
def test_a_missing_label_is_told(value):
    assert read_row(record(a=1, b=1, y=value), COLUMNS, "classes") == "the target 'y' is missing"


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
@pytest.mark.parametrize("value", [-1, 0.5])
def test_counts_are_whole_and_not_negative(likelihood, value):
    issue = f"the count 'y' is {value:g}, but must be a whole number that is not negative"
    assert read_row(record(a=1, b=1, y=value), COLUMNS, likelihood) == issue


def test_successes_are_at_most_the_trials():
    assert read_row(record(a=1, y=2, n=3), TRIALS, "binomial") == Row(7, Position(7, 1), (1.0,), 2.0, 3.0)
    assert read_row(record(a=1, y=4, n=3), TRIALS, "binomial") == "the target 'y' is 4, more than its 3 trials"
    assert "the count 'n' is 2.5" in read_row(record(a=1, y=1, n=2.5), TRIALS, "binomial")
    assert read_row(record(a=1, y=1), TRIALS, "binomial") == "the column of totals 'n' is missing"


@pytest.mark.parametrize(
    ("targets", "likelihood"),
    [
        (["cat", "dog"], "classes"),
        ([True, False], "classes"),
        (["0", "1"] * 5, "classes"),
        (["0", "1"], "gaussian"),
        (["0", "1", "2"] * 5, "gaussian"),
        (["0.5", ""] * 9, "gaussian"),
        ([], "gaussian"),
    ],
)
def test_what_targets_are_is_told_from_the_first(targets, likelihood):
    assert choose_likelihood([record(y=each) for each in targets], COLUMNS) == likelihood


def test_targets_with_totals_are_binomial():
    assert choose_likelihood([record(y=1, n=2)], TRIALS) == "binomial"
