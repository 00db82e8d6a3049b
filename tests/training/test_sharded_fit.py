"""Classes over shards: one question as any fit, several with hyperparameters in common."""

from datetime import date, datetime

import numpy as np
import pytest
import torch

import streamgp as sg
from streamgp.errors import ArgumentTypeError, DTypeError, ValueRangeError
from streamgp.testing.tolerances import approximation, within
from streamgp.training.sharded_fit import Against, classes_of, fit_classes
from streamgp.training.sharding import MappedShards

OPTIONS = {"num_inducing": 3, "max_iterations": 1}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(24, 2))
    return X, X[:, 0] + 0.7 * rng.standard_normal(24)


def shards(X, labels, *, cut=None):
    return MappedShards([(X, labels)] if cut is None else [(X[:cut], labels[:cut]), (X[cut:], labels[cut:])], map)


@pytest.mark.slow
def test_two_classes_are_one_fit_of_the_second(data):
    labels = np.where(data[1] > 0, "up", "down")
    (result,) = fit_classes(shards(data[0], labels), ("down", "up"), **OPTIONS)
    plain = sg.fit(
        [(data[0], (labels == "up").astype(float))],
        map=map,
        likelihood=sg.likelihoods.Bernoulli("probit"),
        standardize="inputs",
        **OPTIONS,
    )
    assert result.info.bound == plain.info.bound
    assert torch.equal(result.gp.inducing_points, plain.gp.inducing_points)


@pytest.mark.slow
@pytest.mark.thorough
def test_several_classes_share_hyperparameters_however_rows_are_divided(data):
    labels = np.digitize(data[1], [-1.0, 1.0])
    whole, apart = (shards(data[0], labels, cut=cut) for cut in (None, 13))
    assert classes_of(apart) == (0, 1, 2)
    results, others = (fit_classes(each, (0, 1, 2), **OPTIONS) for each in (whole, apart))
    for result, other in zip(results, others, strict=True):
        assert result.info.bound == pytest.approx(other.info.bound, **within(approximation(1e-8, "iteration")))
        assert torch.equal(result.gp.inducing_points, results[0].gp.inducing_points)
    middle = results[1].predict(torch.tensor([[-2.5, 0.0], [0.0, 0.0], [2.5, 0.0]], dtype=torch.float64)).mean
    assert middle.argmax() == 1


def test_one_class_is_refused(data):
    with pytest.raises(ValueRangeError, match="two classes or more"):
        fit_classes(shards(data[0], np.zeros(24)), (0.0,))
    assert Against("a")("not a pair") == "not a pair"


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns", "object"])
def test_dates_of_every_unit_are_the_same_classes(unit):
    days = [date(2024, 2, 1), date(2024, 1, 1), date(2024, 2, 1)]
    labels = np.array(days, object if unit == "object" else f"M8[{unit}]")
    classes = classes_of(shards(np.zeros((3, 1)), labels, cut=1))
    assert classes == (datetime(2024, 1, 1), datetime(2024, 2, 1))
    assert all(type(label) is datetime for label in classes)
    _, is_second = Against(classes[1])((np.zeros((3, 1)), labels))
    assert is_second.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (np.array([0.0, 1.0, np.nan]), ValueRangeError, "Shard 1: .*must be whole, but one is nan. Leave out rows"),
        (np.array([0.0, 1.0, 0.5]), ValueRangeError, "Shard 1: .*must be whole, but one is 0.5.*for a regressor"),
        (np.array(["a", "b", None], object), ValueRangeError, "Shard 1: Labels must not be missing"),
        (np.array(["a", "b", np.nan], object), ValueRangeError, "Shard 1: Labels must not be missing"),
        (np.array(["2024-01-01", "2024-02-01", "NaT"], "M8[ns]"), ValueRangeError, "Shard 1: .*one is NaT"),
        (np.array([1, 2, 3], "m8[s]"), DTypeError, "Shard 0: .*durations"),
        (np.array(["a", 2, "b"], object), ArgumentTypeError, "Shard 0: Labels must all be text or all be numbers"),
        (np.array(["a", "b", 2], object), ArgumentTypeError, "all be text or all be numbers"),
    ],
)
def test_labels_that_are_none_are_refused(labels, error, message):
    with pytest.raises(error, match=message):
        classes_of(shards(np.zeros((3, 1)), labels, cut=2))
