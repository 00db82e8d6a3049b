import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

dask_array = pytest.importorskip("dask.array", reason="needs the extra streamgp[dask]")
dask_dataframe = pytest.importorskip("dask.dataframe")

import streamgp as sg  # noqa: E402
from streamgp.errors import ArgumentTypeError, ClusterError, DTypeError, ShapeError, ValueRangeError  # noqa: E402
from streamgp.integrations.dask import DaskGPClassifier, DaskGPRegressor  # noqa: E402
from streamgp.testing.tolerances import approximation, judgement, within  # noqa: E402


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(120, 2))
    return X, 5.0 + 2.0 * np.sin(X[:, 0]) + 0.1 * rng.standard_normal(120)


@pytest.fixture(scope="module")
def regressor(client, data):
    X, y = (dask_array.from_array(each, chunks=(50, 2)[: each.ndim]) for each in data)
    return DaskGPRegressor(num_inducing=8, max_iterations=5).fit(X, y)


@pytest.mark.slow
def test_the_fit_is_that_of_one_process(regressor, data):
    X, y = data
    one = sg.fit([(X, y)], map=map, num_inducing=8, max_iterations=5, standardize=True)
    assert regressor.info_[0].bound == pytest.approx(one.info.bound, **within(approximation(1e-8, "iteration")))
    mean = regressor.to_local().predict(X)
    np.testing.assert_allclose(mean, 5.0 + 2.0 * np.sin(X[:, 0]), **judgement(absolute=0.5))
    expected = one.predict(one.gp.inducing_points.new_tensor(X[:5])).mean.numpy()
    assert mean[:5] == pytest.approx(expected, **within(approximation(1e-8, "iteration", scale=5.0)))


@pytest.mark.slow
def test_clusters_of_all_chunks_are_those_of_one_process(client, data):
    X, y = (dask_array.from_array(each, chunks=(50, 2)[: each.ndim]) for each in data)
    options = {"num_inducing": 8, "max_iterations": 3, "inducing": "distributed_kmeans"}
    model = DaskGPRegressor(**options).fit(X, y)
    one = sg.fit([data], map=map, standardize=True, **options)
    assert model.info_[0].bound == pytest.approx(one.info.bound, **within(approximation(1e-8, "iteration")))
    np.testing.assert_allclose(
        model.to_local().predict(data[0]), one.predict(data[0]).mean, **approximation(1e-6, "iteration")
    )


def test_predictions_are_lazy_and_those_of_the_local_estimator(regressor, data):
    X, y = (dask_array.from_array(each, chunks=(37, 1)[: each.ndim]) for each in data)
    mean, std, quantiles = regressor.predict(X, return_std=True, quantiles=[0.1, 0.9])
    assert mean.chunks == ((37, 37, 37, 9),)
    expected = regressor.to_local().predict(data[0], return_std=True, quantiles=[0.1, 0.9])
    for ours, local in zip((mean, std, quantiles), expected, strict=True):
        np.testing.assert_allclose(ours.compute(), local)
    assert regressor.score(X, y) == pytest.approx(regressor.to_local().score(*data))
    with pytest.raises(ArgumentTypeError, match=r"to_local\(\)\.predict"):
        regressor.predict(data[0])


def test_the_local_estimator_learns_on_and_survives_pickling(regressor, data):
    local = pickle.loads(pickle.dumps(regressor)).to_local()
    assert local.num_seen_ == 120
    local.partial_fit(data[0][:3], data[1][:3])
    assert local.num_seen_ == 123


@pytest.mark.parametrize("as_frame", [False, True])
def test_chunks_that_a_filter_left_without_rows_change_nothing(client, data, as_frame):
    X, y = data
    order = X[:, 0].argsort()  # the first chunks lose all of their rows
    table = dask_dataframe.from_pandas(pd.DataFrame({"a": X[order, 0], "b": X[order, 1], "y": y[order]}), npartitions=4)
    left = table[table["a"] > 0.0]
    inputs, targets = left[["a", "b"]], left["y"]
    assert inputs.map_partitions(len).compute().tolist()[0] == 0
    if not as_frame:
        inputs, targets = inputs.to_dask_array(), targets.to_dask_array()
    model = DaskGPRegressor(num_inducing=8, max_iterations=2).fit(inputs, targets)
    mean, std = model.predict(inputs, return_std=True)
    expected = model.to_local().predict(inputs.compute(), return_std=True)
    np.testing.assert_allclose(mean.compute(), expected[0])
    np.testing.assert_allclose(std.compute(), expected[1])


@pytest.mark.slow
def test_columns_of_data_frames_keep_their_names(client, data):
    table = pd.DataFrame({"east": data[0][:, 0], "north": data[0][:, 1], "y": data[1]})
    frame = dask_dataframe.from_pandas(table, npartitions=3)
    model = DaskGPRegressor(num_inducing=3, max_iterations=1).fit(frame[["east", "north"]], frame["y"])
    assert list(model.feature_names_in_) == ["east", "north"]
    np.testing.assert_allclose(
        model.predict(frame[["east", "north"]]).compute(), model.to_local().predict(table[["east", "north"]])
    )


@pytest.mark.slow
@pytest.mark.thorough
def test_classes_are_told_apart(client, data):
    X = data[0][:30]
    # With errors, so that sites are found in few steps.
    values = X[:, 0] + 0.7 * np.random.default_rng(1).standard_normal(30)
    labels = np.array(["low", "up", "aloft"])[np.digitize(values, [-1.0, 1.0])]
    lazy = dask_array.from_array(X, chunks=(20, 2)), dask_array.from_array(labels, chunks=20)
    model = DaskGPClassifier(num_inducing=3, max_iterations=1).fit(*lazy)
    assert list(model.classes_) == sorted(set(labels))
    assert model.score(*lazy) > 0.6
    probabilities = model.predict_proba(lazy[0]).compute()
    np.testing.assert_allclose(probabilities.sum(1), 1.0)
    local = model.to_local()
    np.testing.assert_allclose(probabilities, local.predict_proba(X))
    assert local.partial_fit(X[:2], labels[:2]).num_seen_ == 32


@pytest.mark.slow
def test_nanosecond_dates_are_labels_like_any_others(client, data, tmp_path):
    X, y = (dask_array.from_array(each, chunks=(50, 2)[: each.ndim]) for each in data)
    days = np.array(["2024-01-01", "2024-02-01"], "M8[ns]")
    labels = (y > 5.0).map_blocks(lambda part: days[part.astype(int)], dtype=days.dtype)
    options = {"num_inducing": 4, "max_iterations": 1}
    model, plain = DaskGPClassifier(**options).fit(X, labels), DaskGPClassifier(**options).fit(X, y > 5.0)
    assert model.classes_.tolist() == days.astype("M8[us]").tolist()
    np.testing.assert_array_equal(model.predict(X).compute() == days[1], plain.predict(X).compute())
    score = plain.score(X, y > 5.0)
    of_objects = dask_array.from_array(labels.compute().astype("M8[D]").astype(object), chunks=50)
    assert model.score(X, labels) == score
    assert model.score(X, of_objects) == score
    local, inputs = model.to_local(), data[0]
    assert local.score(inputs, labels.compute()) == score
    local.save(tmp_path / "local.sgp")
    np.testing.assert_array_equal(sg.load(tmp_path / "local.sgp").predict(inputs), local.predict(inputs))
    local.partial_fit(inputs[:1], labels[:1].compute())
    assert len(local.classes_) == 2


def test_one_class_is_refused_with_a_sentence(client, data):
    labels = np.full(60, 7)
    model = DaskGPClassifier()
    with pytest.raises(ValueRangeError, match=r"two classes or more, but all rows are \[7\]"):
        model.fit(dask_array.from_array(data[0][:60], chunks=(40, 2)), dask_array.from_array(labels, chunks=40))
    assert not hasattr(model, "local_")


def test_what_cannot_be_fitted_is_refused_and_changes_nothing(client, regressor, data):
    X, y = data
    before = regressor.local_
    bad = X.copy()
    bad[60, 1] = np.nan
    with pytest.raises(ValueRangeError, match=r"Chunk 1: X must be finite, but 1 of its 50 rows.*first in row 10"):
        regressor.fit(dask_array.from_array(bad, chunks=(50, 2)), dask_array.from_array(y, chunks=50))
    with pytest.raises(ShapeError, match="y must have 120 values"):
        regressor.fit(dask_array.from_array(X, chunks=(50, 2)), dask_array.from_array(y[:7], chunks=7))
    with pytest.raises(ArgumentTypeError, match=r"dask\.array\.from_array"):
        regressor.fit(X, y)
    table = pd.DataFrame({"place": ["a", "b"] * 60, "x": X[:, 0]})
    frame = dask_dataframe.from_pandas(table, npartitions=2)
    with pytest.raises(DTypeError, match=r"columns of numbers, but has 'place' \("):
        regressor.fit(frame, frame["x"])
    with pytest.raises(ShapeError, match=r"one column, but is a table.*y\['x'\]"):
        regressor.fit(frame[["x"]], frame[["x"]])
    assert regressor.local_ is before


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.array(["2024-01-01"] * 120, "M8[ns]"), r"real numbers, but holds datetime64\[ns\]"),
        (np.array(["a"] * 120), "real numbers, but holds <U1"),
        (np.array([1.0 + 1.0j] * 120), "real numbers, but holds complex128"),
        (np.array([pd.Timestamp("2024-01-01")] * 120, object), "Chunk 0: X must hold numbers, but float"),
    ],
)
def test_inputs_that_are_no_numbers_are_refused(client, data, column, message):
    X, y = (dask_array.from_array(each, chunks=120) for each in (column[:, None], data[1]))
    with pytest.raises(DTypeError, match=message):
        DaskGPRegressor().fit(X, y)


@pytest.mark.slow
def test_one_column_need_not_be_a_table(client, data):
    x, y = (dask_array.from_array(each, chunks=120) for each in (data[0][:, 0], data[1]))
    model = DaskGPRegressor(num_inducing=3, max_iterations=1).fit(x, y)
    np.testing.assert_array_equal(model.predict(x).compute(), model.predict(x[:, None]).compute())


@pytest.mark.parametrize("make", [DaskGPRegressor, DaskGPClassifier])
def test_clones_have_the_same_options_and_client(client, make):
    model = make(client=client, num_inducing=7)
    copied = clone(model)
    assert copied is not model
    assert copied.get_params() == model.get_params()
    assert copied.client is client


def test_a_client_is_asked_for_where_there_is_none(data):
    import distributed

    from streamgp.integrations.dask.shards import read_client

    if distributed.client._get_global_client() is None:
        with pytest.raises(ClusterError, match="There is no Dask client"):
            read_client(None)
    with pytest.raises(ArgumentTypeError, match="client must be"):
        read_client("tcp://nowhere:1")
