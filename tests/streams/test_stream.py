"""Rows as they come: mappings and tables with dates, categories, gaps and missing values."""

import copy

import numpy as np
import pandas as pd
import pytest

import streamgp as sg
from streamgp.errors import (
    ArgumentTypeError,
    OptionError,
    ShapeError,
    StreamGPWarning,
    UnsupportedError,
    ValueRangeError,
)
from streamgp.testing.tolerances import judgement, within


def rows(n, seed=0):
    draw = np.random.default_rng(seed)
    return [
        {
            "when": f"2024-03-{1 + i // 24:02d} {i % 24:02d}:00",
            "city": ("Oslo", "Molde")[i % 2],
            **({"load": float(i % 5)} if i % 7 else {}),
            "power": float(np.sin(i / 4) + i % 2 + 0.05 * draw.standard_normal()) if i % 11 != 5 else None,
        }
        for i in range(n)
    ]


def features(row):
    return {name: value for name, value in row.items() if name != "power"}


@pytest.fixture(scope="module")
def learned():
    stream = sg.Stream("power", max_inducing=40)
    for row in rows(60):
        stream.learn(row)
    return stream


def test_ordinary_rows_are_predicted_better_than_by_the_last_value(learned):
    metrics = learned.score_report().metrics
    assert metrics["MAE"] < 0.5 * metrics["MAE of the last value"]
    assert (learned.num_rows_, learned.num_seen_, learned.num_unlabeled_) == (60, 55, 5)
    assert learned.likelihood_ == "gaussian"
    assert {column.name: column.kind for column in learned.columns_.columns} == {
        "when": "date",
        "city": "category",
        "load": "number",
    }


def test_means_stand_for_what_is_missing(learned):
    column = next(each for each in learned.columns_.columns if each.name == "load")
    given = [row["load"] for row in rows(60) if "load" in row]
    assert column.num_values == len(given)
    assert column.mean == pytest.approx(np.mean(given))


def test_a_table_a_list_and_a_mapping_are_predicted_alike_and_keep_the_index(learned):
    new = [features(row) for row in rows(3, seed=1)]
    table = pd.DataFrame(new).set_axis(["a", "b", "c"])
    said = learned.predict(table)
    np.testing.assert_array_equal(said.mean, learned.predict(new).mean)
    np.testing.assert_array_equal(said.mean[:1], learned.predict(new[0]).mean)
    assert said.frame().index.tolist() == ["a", "b", "c"]
    record = learned.predict(new[0]).records()[0]
    assert record["mean"] == said.mean[0]
    assert set(record["quantiles"]) == {"0.05", "0.95"}


def test_a_stream_that_was_saved_goes_on_as_if_it_had_not_been(learned, tmp_path):
    one = copy.deepcopy(learned)
    ticket = one.expect(rows(62)[60:])
    one.save(tmp_path / "a")
    sg.storage.save(ticket, tmp_path / "b")
    two, again = sg.load(tmp_path / "a"), sg.load(tmp_path / "b")
    for stream, said in ((one, ticket), (two, again)):
        stream.learn(said, [0.3, None])
        for row in rows(110, seed=2)[62:]:
            stream.learn(row)
    new = features(rows(1, seed=3)[0])
    np.testing.assert_array_equal(one.predict(new).mean, two.predict(new).mean)
    assert two.num_rows_ == one.num_rows_ == 110
    assert repr(two.score_report()) == repr(one.score_report())


def test_what_a_later_row_says_of_columns_is_heeded_and_late_targets_too():
    stream = sg.Stream("y", likelihood="gaussian")
    for i in range(12):
        stream.learn({"a": float(i % 4), "y": float(i % 4)})
    ticket = stream.expect({"a": 1.0})
    for i in range(20):
        stream.learn({"a": float(i % 4), "b": ("x", "z")[i % 2], "y": float(i % 4) + 5.0 * (i % 2)})
    stream.learn(ticket, 1.0)
    assert [each.kind for each in stream.columns_.columns] == ["number", "category"]
    x, z = (stream.predict({"a": 2.0, "b": each}).mean[0] for each in "xz")
    assert z - x == pytest.approx(5.0, **within(judgement(absolute=2.5)))
    assert stream.num_seen_ == 33


def test_a_column_that_comes_too_late_is_counted():
    stream = sg.Stream("y", first_rows=5)
    for i in range(8):
        stream.learn({"a": float(i), "y": float(i), **({"b": 1.0} if i > 5 else {})})
    assert stream.num_ignored_ == 2
    assert stream.columns_.outputs == ("a",)


def test_labels_are_found_and_predicted_as_they_were_given():
    stream = sg.Stream("open")
    for i in range(40):
        stream.learn({"hour": float(i % 8), "open": i % 8 > 3})
    said = stream.predict({"hour": 6.0})
    assert stream.likelihood_ == "classes"
    assert said.labels == [True]
    assert set(said.classes) == {True, False}
    assert said.records()[0]["label"] is True
    assert stream.score_report().metrics["accuracy"] > 0.6


def test_several_targets_of_which_one_may_be_missing():
    stream = sg.Stream(["low", "high"])
    for i in range(30):
        stream.learn({"a": i % 5, "low": float(i % 5), "high": 10.0 + i % 5 if i % 3 else None})
    said = stream.predict({"a": 2})
    assert said.mean.shape == (1, 2)
    assert list(said.frame().columns) == [
        f"{name} {what}" for name in ("low", "high") for what in ("mean", "std", "5 %", "95 %")
    ]
    ticket = stream.expect({"a": 3})
    stream.learn(ticket, {"low": 3.0, "high": None})
    assert stream.num_rows_ == 31


@pytest.mark.parametrize(
    ("row", "error", "sentence"),
    [
        ({"when": "yesterday", "city": "Oslo", "power": 1.0}, ValueRangeError, "not a date like those before it"),
        (
            {"when": "2024-03-09 10:00", "load": "much", "power": 1.0},
            ValueRangeError,
            "'load' is 'much' and not a number",
        ),
        ({"when": "2024-03-09 10:00", "power": float("inf")}, ValueRangeError, "the target 'power' is not finite"),
        (7, ArgumentTypeError, "Rows must be a list of mappings"),
    ],
)
def test_a_bad_row_is_refused_with_a_sentence_and_changes_nothing(learned, row, error, sentence):
    stream, new = copy.deepcopy(learned), features(rows(1, seed=1)[0])
    before = stream.predict(new).mean
    with pytest.raises(error, match=sentence):
        stream.learn(row)
    np.testing.assert_array_equal(stream.predict(new).mean, before)
    assert stream.num_rows_ == 60
    if error is ValueRangeError:
        assert stream.issues([row, rows(1)[0]])[1] == ""
        assert stream.issues(row)[0]


def test_an_unread_target_is_told_and_its_row_passes(learned):
    stream = copy.deepcopy(learned)
    with pytest.warns(StreamGPWarning, match=r"not learned: the target 'power' is '12\.3x' and not a number"):
        stream.learn({**rows(61)[60], "power": "12.3x"})
    assert (stream.num_rows_, stream.num_seen_, stream.num_unread_) == (61, 55, 1)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(OptionError, match="Name their column as total_count"):
        sg.Stream("y", likelihood="binomial")
    with pytest.raises(OptionError, match="There is no column 'y' for the target"):
        sg.Stream("y").learn({"a": 1.0})
    with pytest.raises(OptionError, match="There are no features"):
        sg.Stream("y").learn({"y": 1.0})
    with pytest.raises(UnsupportedError, match="nothing to predict before the first row"):
        sg.Stream("y").predict({"a": 1.0})
    stream = sg.Stream("y").look_at([{"a": 1.0, "y": 1.0}])
    with pytest.raises(UnsupportedError, match="Call look_at before the first row"):
        stream.look_at([{"a": 1.0, "y": 1.0}])
    stream.learn({"a": 1.0, "y": 1.0})
    with pytest.raises(ShapeError, match=r"a target .* for each of the 1 rows"):
        stream.learn(stream.expect({"a": 1.0}), [1.0, 2.0])
    with pytest.raises(ValueRangeError, match="weights must be 1 positive numbers"):
        stream.learn({"a": 1.0, "y": 1.0}, weights=[0.0])


def test_it_explains_and_draws(learned):
    (why,) = learned.explain(features(rows(1)[0]))
    assert sum(each.weight for each in why.experts) == pytest.approx(1.0)
    assert len(learned.plot_history().axes) >= 4
    assert learned.refits_
    assert not learned.is_refitting_
    assert copy.deepcopy(learned).set_refit("never").refit == "never"
