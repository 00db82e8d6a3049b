import math

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer

import streamgp as sg
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, StreamGPWarning
from streamgp.storage import save
from streamgp.streams.preprocessing import StreamPreprocessor
from streamgp.tables.columns import Preprocessing

ROWS = [
    {"when": "2024-03-01 06:00", "city": "Oslo", "load": 3.0},
    {"when": "2024-03-02 18:00", "city": "Bergen", "load": None},
    {"when": "2024-03-03 06:00", "city": "Oslo", "load": "5"},
]


def test_dates_texts_and_missing_values_become_numbers():
    preprocessor = StreamPreprocessor().fit(ROWS)
    names = list(preprocessor.get_feature_names_out())
    assert names == [
        "when",
        *(f"when {cycle} {wave}" for cycle in ("hour", "weekday", "day of year") for wave in ("sine", "cosine")),
        "city=Bergen",
        "city=Oslo",
        "city=other",
        "load",
        "load is missing",
    ]
    X = preprocessor.transform(ROWS)
    columns = dict(zip(names, X.T, strict=True))
    assert np.allclose(np.diff(columns["when"]), [1.5, 0.5])
    assert np.allclose(columns["when hour sine"], [1.0, -1.0, 1.0])
    assert np.array_equal(columns["city=Oslo"], [1.0, 0.0, 1.0])
    assert np.array_equal(columns["load"], [3.0, 4.0, 5.0])
    assert np.array_equal(columns["load is missing"], [0.0, 1.0, 0.0])


def test_what_comes_later_keeps_the_width():
    preprocessor = StreamPreprocessor().partial_fit(ROWS)
    sentence = "in row 0, counted from 0, the feature 'load' is 'x' and not a number, and so for 2 more"
    with pytest.warns(StreamGPWarning, match=sentence):
        later = preprocessor.transform(
            [{"city": "Trondheim", "load": "x"}, {"when": "soon", "city": None, "load": math.inf}]
        )
    names = list(preprocessor.get_feature_names_out())
    assert np.isfinite(later).all()
    assert np.array_equal(later[:, names.index("city=other")], [1.0, 1.0])
    assert np.array_equal(later[:, names.index("load is missing")], [1.0, 1.0])


def test_means_are_learned_row_by_row_as_at_once():
    once, rows = StreamPreprocessor().partial_fit(ROWS), StreamPreprocessor().partial_fit(ROWS[:2])
    rows.partial_fit(ROWS[2:])
    assert once.columns_[2].mean == pytest.approx(rows.columns_[2].mean) == 4.0


def test_kinds_can_be_said_and_columns_left_out():
    rows = [{"zip": 1234, "x": 1.0}, {"zip": 5678, "x": 2.0}]
    said = StreamPreprocessor(kinds={"zip": "category"}).fit(rows)
    assert list(said.get_feature_names_out()) == ["zip=1234", "zip=5678", "zip=other", "x"]
    assert list(StreamPreprocessor(exclude=["zip"]).fit(rows).get_feature_names_out()) == ["x"]
    few = StreamPreprocessor(max_categories=1).fit([{"c": "a"}, {"c": "b"}, {"c": "b"}])
    assert list(few.get_feature_names_out()) == ["c=b", "c=other"]


def test_a_mistake_among_numbers_or_dates_does_not_make_them_texts():
    rows = [{"x": str(i), "when": f"{1 + i}/03/2024", "name": f"n{i}"} for i in range(30)]
    rows[4] = {"x": "oops", "when": "?!", "name": "n4"}
    kinds = {column.name: (column.kind, column.format) for column in StreamPreprocessor().fit(rows).columns_}
    assert kinds == {"x": ("number", ""), "when": ("date", "%d/%m/%Y"), "name": ("text", "")}


def test_before_the_first_value_a_missing_one_is_the_mean_of_the_first_rows():
    state = Preprocessing.from_records([{"x": None}, {"x": 1000.0}, {"x": 1010.0}])
    assert state.transform([{"x": None}]).tolist() == [[1005.0, 1.0]]
    assert state.learned([{"x": 1000.0}]).transform([{}]).tolist() == [[1000.0, 1.0]]


def test_frames_and_arrays_are_rows_too():
    pd = pytest.importorskip("pandas")
    frame = StreamPreprocessor().fit_transform(
        pd.DataFrame({"a": [1.0, np.nan], "b": pd.to_datetime(["2024-01-01"] * 2)})
    )
    assert frame.shape == (2, 7)
    assert np.array_equal(StreamPreprocessor().fit_transform(np.array([[1.0, 2.0], [3.0, 4.0]])), [[1, 2], [3, 4]])


def test_it_is_saved_and_goes_before_a_learner(tmp_path):
    preprocessor = StreamPreprocessor().fit(ROWS)
    save(preprocessor, tmp_path / "a")
    loaded = sg.load(tmp_path / "a")
    assert np.array_equal(loaded.transform(ROWS), preprocessor.transform(ROWS))


@pytest.mark.parametrize(
    ("options", "rows", "error", "sentence"),
    [
        ({}, [], ShapeError, "The first rows say"),
        ({}, 3, ArgumentTypeError, "Rows must be a list of mappings"),
        ({}, [3], ArgumentTypeError, "Each row must be a mapping"),
        ({"kinds": {"y": "date"}}, [{"x": 1}], OptionError, r"names the columns \['y'\]"),
        ({"kinds": {"x": "color"}}, [{"x": 1}], OptionError, "the kind of 'x' must be one of"),
        ({"kinds": {"x": "date"}}, [{"x": "soon"}], OptionError, "should hold dates"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(options, rows, error, sentence):
    with pytest.raises(error, match=sentence):
        StreamPreprocessor(**options).fit(rows)


def test_dates_with_different_time_zones_are_in_order():
    rows = [{"t": f"2024-03-30T{hour:02d}:00{zone}"} for hour, zone in [(10, "Z"), (12, "+01:00"), (14, "+02:00")]]
    days = StreamPreprocessor().fit_transform(rows)[:, 0]
    assert np.allclose(24.0 * np.diff(days), 1.0)
    assert np.allclose(StreamPreprocessor().fit(rows[1:2]).transform(rows[1:2])[0, 0] % 1.0, 0.5)


def test_whole_numbers_are_the_same_categories_among_missing_ones():
    state = StreamPreprocessor(kinds={"zip": "category"}).fit([{"zip": "1234"}, {"zip": "99"}])
    assert np.array_equal(state.transform([{"zip": 1234.0}, {"zip": 99}, {"zip": 7.0}]), np.eye(3))


def test_an_array_of_dates_is_not_one_of_numbers():
    days = np.array([["2024-03-01"], ["2024-03-02"]], "datetime64[ns]")
    assert StreamPreprocessor().fit(days).columns_[0].kind == "date"


NAMELESS = np.array([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]])


@pytest.mark.parametrize("method", ["transform", "partial_fit"])
@pytest.mark.parametrize(
    ("first", "rows", "error", "sentence"),
    [
        (ROWS, NAMELESS, OptionError, r"none of the columns \['when'.*but \['x0', 'x1', 'x2'\]. Pass a table"),
        (NAMELESS, [{"a": 1.0}], OptionError, r"none of the columns \['x0', 'x1', 'x2'\], but \['a'\]"),
        (
            NAMELESS,
            NAMELESS[:, :2],
            ShapeError,
            r"as many values as the first ones, .*\['x0', 'x1', 'x2'\], but have 2",
        ),
        (NAMELESS[:, :2], NAMELESS.tolist(), ShapeError, "as many values as the first ones, .*but have 3"),
        (NAMELESS, [[1.0, 2.0, 3.0], [4.0, 5.0]], ShapeError, "equally many values, but have from 2 to 3"),
    ],
)
def test_rows_of_another_table_are_refused_and_change_nothing(method, first, rows, error, sentence):
    preprocessor = StreamPreprocessor().fit(first)
    before = preprocessor.state_
    with pytest.raises(error, match=sentence):
        getattr(preprocessor, method)(rows)
    assert preprocessor.state_ is before


def test_columns_that_are_left_out_may_be_there_or_not():
    preprocessor = StreamPreprocessor(exclude=("x1",)).fit(NAMELESS)
    assert preprocessor.transform(NAMELESS).tolist() == NAMELESS[:, [0, 2]].tolist()
    assert preprocessor.transform([{"x0": 1.0, "x2": 3.0}]).tolist() == [[1.0, 3.0]]


def test_columns_that_may_have_been_renamed_are_told():
    preprocessor = StreamPreprocessor().fit([{"a": 1.0, "b": 2.0}])
    with pytest.warns(StreamGPWarning, match=r"no columns \['a'\], which are taken as missing, but \['A'\]"):
        preprocessor.transform([{"A": 1.0, "b": 2.0}])


def test_a_series_is_no_table_and_columns_have_names_of_their_own():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"b": ["u", "v"]}, index=["one", "two"])
    with pytest.raises(ArgumentTypeError, match=r"are a Series. Pass X.to_frame\(\) for a column"):
        ColumnTransformer([("b", StreamPreprocessor(), "b")]).fit(table)
    with pytest.raises(OptionError, match="different names, but 'b' comes twice"):
        StreamPreprocessor().fit(table[["b", "b"]])
    assert StreamPreprocessor().fit(table).transform(table.iloc[0]).tolist() == [[1.0, 0.0, 0.0]]
