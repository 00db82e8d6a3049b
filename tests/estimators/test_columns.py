import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

import streamgp as sg
from streamgp.errors import ShapeError
from streamgp.estimators.columns import TableColumns, needs_reading


def houses(n=120, *, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "area": rng.uniform(40, 200, n),
            "heated": rng.choice(["yes", "no"], n),
            "town": rng.choice(["Oslo", "Bergen", "Voss"], n),
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
            "rooms": rng.integers(1, 6, n),
        }
    )
    price = table["area"] / 50 + table["town"].map({"Oslo": 2.0, "Bergen": 1.0, "Voss": 0.0})
    table.loc[rng.random(n) < 0.2, "area"] = np.nan
    table.loc[rng.random(n) < 0.1, "town"] = None
    return table, (price + 0.1 * rng.normal(size=n)).to_numpy()


def test_words_dates_and_gaps_become_numbers_that_differ():
    table, _ = houses()
    columns = TableColumns.of(table)
    numbers = columns.numbers(table)
    assert np.isfinite(numbers).all()
    assert {"area", "area is missing", "town=Oslo", "town=Bergen", "town=Voss", "town=other", "sold"} <= set(
        columns.names
    )
    # Two words are one number.
    assert sum(name.startswith("heated=") for name in columns.names) == 1
    spread = numbers.std(axis=0)
    assert (spread > 0).all()
    is_missing = numbers[:, columns.names.index("area is missing")] == 1.0
    np.testing.assert_array_equal(is_missing, table["area"].isna())
    np.testing.assert_allclose(numbers[is_missing, 0], table["area"].mean())
    oslo = numbers[:, columns.names.index("town=Oslo")]
    np.testing.assert_array_equal(oslo == 1.0, table["town"] == "Oslo")


def test_words_that_were_not_seen_are_others_and_rows_are_read_alike_alone():
    table, _ = houses()
    columns = TableColumns.of(table)
    new = table.head(3).copy()
    new["town"] = ["Narvik", "Oslo", None]
    numbers = columns.numbers(new)
    other = columns.names.index("town=other")
    np.testing.assert_array_equal(numbers[:, other], [1.0, 0.0, 1.0])
    alone = np.concatenate([columns.numbers(new.iloc[[row]]) for row in range(3)])
    np.testing.assert_array_equal(alone, numbers)


def test_tables_of_numbers_are_read_as_they_are():
    assert not needs_reading(np.zeros((3, 2)))
    assert not needs_reading(pd.DataFrame({"a": [1, 2], "b": [True, False]}))
    assert needs_reading(np.array([[0.0, np.nan]]))
    with pytest.raises(ShapeError, match="X has no column of use"):
        TableColumns.of(pd.DataFrame({"name": [f"person {i}" for i in range(60)], "one": np.ones(60)}))


def test_a_regressor_reads_tables(tmp_path):
    table, y = houses()
    model = sg.GPRegressor(num_inducing=20, kernel="matern").fit(table, y)
    new, truth = houses(60, seed=1)
    assert np.corrcoef(model.predict(new), truth)[0, 1] > 0.8
    assert model.feature_names_in_.tolist() == list(table.columns)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(sg.load(tmp_path / "model").predict(new), model.predict(new))
    later = model.condition(new.head(2), [9.0, 9.0])
    assert (np.abs(later.predict(new.head(2)) - 9.0) < np.abs(model.predict(new.head(2)) - 9.0)).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(new.rename(columns={"town": "city"}))


def test_arrays_with_gaps_are_read_and_infinity_is_not():
    rng = np.random.default_rng(0)
    X = rng.random((80, 2))
    y = X[:, 0]
    X[::7, 1] = np.nan
    model = sg.GPRegressor(num_inducing=10, kernel="matern").fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 0.1
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        sg.GPRegressor(num_inducing=10, kernel="matern").fit(X, y)


def test_a_classifier_reads_tables_and_is_saved(tmp_path):
    table, y = houses()
    labels = np.where(y > np.median(y), "dear", "cheap")
    model = sg.GPClassifier(num_inducing=15).fit(table, labels)
    new, truth = houses(60, seed=1)
    assert np.mean(model.predict(new) == np.where(truth > np.median(y), "dear", "cheap")) > 0.8
    model.save(tmp_path / "model")
    loaded = sg.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(loaded.classes_, model.classes_)


@pytest.mark.slow
def test_tables_go_through_cross_validation():
    table, y = houses()
    assert cross_val_score(sg.GPRegressor(num_inducing=15, kernel="matern"), table, y, cv=3).mean() > 0.5
