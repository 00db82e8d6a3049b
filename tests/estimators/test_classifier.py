import numpy as np
import pytest
from tests.support.estimator_checks import checks_of_scikit_learn

import streamgp as sg
from streamgp.errors import UnsupportedError, ValueRangeError


def corners(n=90, *, seed=0):
    X = np.random.default_rng(seed).random((n, 2))
    return X, np.where(X[:, 0] < 0.4, "left", np.where(X[:, 1] > 0.5, "up", "down"))


@pytest.mark.slow
@checks_of_scikit_learn(sg.GPClassifier(num_inducing=5))
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_probabilities_are_of_labels_in_their_order(num_classes):
    X, labels = corners()
    labels = labels if num_classes == 3 else np.where(labels == "up", "down", labels)
    model = sg.GPClassifier(num_inducing=12).fit(X, labels)
    W, truth = corners(60, seed=1)
    truth = truth if num_classes == 3 else np.where(truth == "up", "down", truth)
    probabilities = model.predict_proba(W)
    assert list(model.classes_) == sorted(set(labels))
    np.testing.assert_allclose(probabilities.sum(-1), 1.0)
    assert model.score(W, truth) > 0.85
    np.testing.assert_array_equal(model.predict(W), model.classes_[probabilities.argmax(-1)])


def test_new_labels_are_conditioned_on_and_absorbed():
    X, labels = corners(60)
    model = sg.GPClassifier(num_inducing=10).fit(X, labels == "left")
    W = np.full((6, 2), [0.9, 0.9]) + 0.01 * np.random.default_rng(0).normal(size=(6, 2))
    before = model.predict_proba(W)[:, 1]
    for other in (model.condition(W, np.ones(6, dtype=bool)), model.absorb(W, np.ones(6, dtype=bool))):
        assert (other.predict_proba(W)[:, 1] > before).all()
    np.testing.assert_array_equal(model.predict_proba(W)[:, 1], before)
    with pytest.raises(ValueRangeError, match="must be of the classes"):
        model.condition(W, np.full(6, 3))


def test_weights_are_whole_numbers():
    X, labels = corners(40)
    counts = np.random.default_rng(0).integers(0, 3, 40)
    weighted = sg.GPClassifier(num_inducing=8).fit(X, labels == "left", sample_weight=counts)
    repeated = sg.GPClassifier(num_inducing=8).fit(np.repeat(X, counts, axis=0), np.repeat(labels == "left", counts))
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    with pytest.raises(UnsupportedError, match="whole numbers for a classifier"):
        sg.GPClassifier().fit(X, labels, sample_weight=np.linspace(0.1, 1.0, 40))
    with pytest.raises(ValueRangeError, match="all are of one class"):
        sg.GPClassifier().fit(X, np.zeros(40))
