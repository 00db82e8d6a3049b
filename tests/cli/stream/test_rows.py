import pytest

from streamgp.cli.stream.rows import (
    Columns,
    Row,
    check_targets,
    choose_columns,
    choose_likelihood,
    count_labels,
    read_row,
    unread_targets,
    written_differently,
)
from streamgp.errors import OptionError, ValueRangeError
from streamgp.tables.columns import Column
from streamgp.tables.lines import Position
from streamgp.tables.records import Record

COLUMNS = Columns(("a", "b"), "y", None)
TRIALS = Columns(("a",), "y", "n")
NUMBERS = (Column("a", "number"), Column("b", "number"))


def record(**fields):
    return Record(7, Position(7, 1), fields)


def test_columns_are_all_but_the_target():
    assert choose_columns(["a", "y", "b"], "y", None) == COLUMNS
    assert choose_columns(["a", "n", "y", "b"], "y", ["b"], total_count="n") == Columns(("b",), "y", "n")
    assert choose_columns(["a", "c", "y", "b"], "y", None, exclude=["c"]) == COLUMNS


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((["a", "b"], "y", None), "no column 'y' for the target. The columns are 'a', 'b'"),
        ((["a", "y"], "y", ["a", "c"]), "no column 'c' for the feature"),
        ((["y"], "y", None), "There are no features"),
        ((["a|y"], "y", None), "The columns are 'a|y'. If these are several, separate them by commas, semicolons or"),
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
    given = {name: fields[name] for name in "ab"}
    assert read_row(record(**fields), COLUMNS, "gaussian", NUMBERS) == Row(7, Position(7, 1), given, 0.5)


@pytest.mark.parametrize(("value", "label"), [(" cat ", "cat"), (1, "1"), (True, "true"), ("1", "1"), (2.5, "2.5")])
def test_labels_are_texts(value, label):
    assert read_row(record(a=1, b=2, y=value), COLUMNS, "classes", NUMBERS).target == label


@pytest.mark.parametrize(
    ("fields", "issue"),
    [
        ({"a": 1, "b": "red", "y": 1}, "the feature 'b' is 'red' and not a number"),
        ({"a": 1, "b": "1_0", "y": 1}, "the feature 'b' is '1_0' and not a number"),
        ({"a": 1, "b": [1], "y": 1}, "the feature 'b' is [1] and not a number"),
        ({"a": "inf", "b": 1, "y": 1}, "the feature 'a' is not finite"),
        ({"a": 10**400, "b": 1, "y": 1}, "the feature 'a' is not finite"),
        ({"a": 1, "b": 1, "y": "-inf"}, "the target 'y' is not finite"),
    ],
)
def test_a_bad_value_is_named(fields, issue):
    assert read_row(record(**fields), COLUMNS, "gaussian", NUMBERS) == issue


@pytest.mark.parametrize("value", ["", "NaN", float("nan"), None])
def test_a_missing_feature_is_left_to_the_preprocessing(value):
    assert read_row(record(a=value, y=1), COLUMNS, "gaussian", NUMBERS).fields["b"] is None


@pytest.mark.parametrize(("likelihood", "value"), [("classes", "null"), ("classes", [1]), ("gaussian", None)])
def test_a_missing_target_is_none(likelihood, value):
    assert read_row(record(a=1, b=1, y=value), COLUMNS, likelihood, NUMBERS).target is None


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
@pytest.mark.parametrize("value", ["high", "n/a?", "12.3x", [1]])
def test_a_target_that_is_not_a_number_is_taken_as_missing_and_named(likelihood, value):
    row = read_row(record(a=1, b=1, y=value), COLUMNS, likelihood, NUMBERS)
    assert row == Row(7, Position(7, 1), {"a": 1, "b": 1}, None, None, f"the target 'y' is {value!r} and not a number")


def test_dates_and_categories_are_read_as_such():
    columns = (Column("a", "date", format="iso"), Column("b", "category", categories=("x",)))
    assert isinstance(read_row(record(a="2024-03-01", b="new", y=1), COLUMNS, "gaussian", columns), Row)
    issue = read_row(record(a="soon", b="x", y=1), COLUMNS, "gaussian", columns)
    assert issue == "the feature 'a' is 'soon' and not a date like those before it"
    issue = read_row(record(a="2024-03-01", b=[1], y=1), COLUMNS, "gaussian", columns)
    assert issue == "the feature 'b' is [1] and not a category"


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
@pytest.mark.parametrize("value", [-1, 0.5])
def test_counts_are_whole_and_not_negative(likelihood, value):
    issue = f"the count 'y' is {value:g}, but must be a whole number that is not negative"
    assert read_row(record(a=1, b=1, y=value), COLUMNS, likelihood, NUMBERS) == issue


def test_successes_are_at_most_the_trials():
    assert read_row(record(a=1, y=2, n=3), TRIALS, "binomial", NUMBERS[:1]) == Row(
        7, Position(7, 1), {"a": 1}, 2.0, 3.0
    )
    assert (
        read_row(record(a=1, y=4, n=3), TRIALS, "binomial", NUMBERS[:1])
        == "the target 'y' is 4, more than its 3 trials"
    )
    assert "the count 'n' is 2.5" in read_row(record(a=1, y=1, n=2.5), TRIALS, "binomial", NUMBERS[:1])
    assert read_row(record(a=1, y=1), TRIALS, "binomial", NUMBERS[:1]) == "the total count 'n' is missing"


@pytest.mark.parametrize(
    ("targets", "likelihood"),
    [
        (["cat", "dog"], "classes"),
        ([True, False], "classes"),
        (["0", "1"] * 5, "classes"),
        (["0", "1"], "gaussian"),
        (["0", "1", "2"] * 5, "gaussian"),
        (["0.5", ""] * 9, "gaussian"),
        (["0.5", "1.5", "2.5"] * 3 + ["n/a?"], "gaussian"),
        (["0", "1"] * 9 + ["12.3x", "?"], "classes"),
        (["cat", "dog", "cow"] * 3 + ["7"], "classes"),
        ([], "gaussian"),
    ],
)
def test_what_targets_are_is_told_from_the_first(targets, likelihood):
    assert choose_likelihood([record(y=each) for each in targets], COLUMNS) == likelihood


def test_targets_with_a_total_count_are_binomial():
    assert choose_likelihood([record(y=1, n=2)], TRIALS) == "binomial"


def test_targets_with_decimal_commas_are_no_classes():
    with pytest.raises(ValueRangeError, match="'y' holds numbers with decimal commas"):
        choose_likelihood([record(y="1,5"), record(y="2,25")], COLUMNS)


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        (["1.5", "2.5", "x"], r"Of the first 3 targets 'y', 2 are numbers and the others not, such as 'x'\. Pass"),
        (["", None], r"None of the first 2 rows has a target 'y'.*--likelihood.*--first-rows"),
        ([f"{i} kW" for i in range(30)], r"The first 30 targets 'y' are 30 different texts, such as '0 kW'"),
    ],
)
def test_targets_that_are_neither_numbers_nor_labels_are_asked_about(targets, sentence):
    with pytest.raises(OptionError, match=sentence):
        choose_likelihood([record(y=each) for each in targets], COLUMNS)


def test_numbers_are_asked_for_only_where_there_are_some():
    check_targets([record(y=each) for each in ("x", "y", "1")], COLUMNS)
    check_targets([record(y=each) for each in ("", None)], COLUMNS)
    with pytest.raises(OptionError, match=r"None of the first 2 targets 'y' is a number.*'x'.*--likelihood classes"):
        check_targets([record(y="x"), record(y=""), record(y="z")], COLUMNS)
    with pytest.raises(ValueRangeError, match="'y' holds numbers with decimal commas"):
        check_targets([record(y="1,5"), record(y="2")], COLUMNS)


def test_targets_that_are_not_numbers_are_found_and_labels_counted():
    records = [record(y=each) for each in ("1", "x", "", " x", True)]
    assert unread_targets(records, COLUMNS) == [(7, "x"), (7, " x")]
    assert count_labels(records, COLUMNS) == [("x", 2), ("1", 1), ("true", 1)]


def test_labels_that_only_their_writing_tells_apart_are_found():
    assert written_differently(["True", "a", "TRUE", "1", "1.0", "b", "01"]) == [["True", "TRUE"], ["1", "1.0", "01"]]
    assert written_differently(["a", "b", "1", "2"]) == []
