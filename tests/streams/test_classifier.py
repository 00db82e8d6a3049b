import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

import streamgp as sg
from streamgp.errors import ArgumentTypeError, DTypeError, OptionError, ValueRangeError
from streamgp.testing.tolerances import judgement, rounding, tolerance


@pytest.fixture
def numbers():
    return np.random.default_rng(20_230_517)


def frozen_kernel():
    kernel = ScaleKernel(RBFKernel())
    kernel.outputscale, kernel.base_kernel.lengthscale = 9.0, 0.7
    return kernel.requires_grad_(False)


def small(**options):
    return sg.StreamingGPClassifier(
        **{"num_inducing": 12, "warmup": 30, "refit": "never", "kernel": frozen_kernel(), **options}
    )


def rings(numbers, n, *, labels=("near", "middle", "far")):
    """Classes by the distance from the origin: no line separates them."""
    X = 2.0 * numbers.standard_normal((n, 2))
    radius = np.linalg.norm(X, axis=-1)
    edges = [2.5] if len(labels) == 2 else [1.8, 3.0]
    return X, np.array(labels)[np.digitize(radius, edges)]


# Without a kernel: scikit-learn takes an untouched one for changed, as joblib's hash of its copy is another.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* outside the range of all rows")
@parametrize_with_checks([sg.StreamingGPClassifier(num_inducing=5, warmup=5, refit="never", buffer_size=10)])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    """Rows of three classes and a model of them, which is not to be changed."""
    X, y = rings(np.random.default_rng(20_230_517), 30)
    return X, y, small(num_inducing=8).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [("no", "yes"), ("near", "middle", "far")])
def test_without_any_argument_it_learns_classes(numbers, labels):
    X, y = rings(numbers, 400, labels=labels)
    model = sg.StreamingGPClassifier()
    for start in range(0, 220, 110):
        model.partial_fit(X[start : start + 110], y[start : start + 110])
    assert model.score(X[220:], y[220:]) > 0.85
    chance = -np.log(len(labels))
    assert model.log_predictive_density(X[220:], y[220:]).mean() > 0.5 * chance


@pytest.mark.slow
@pytest.mark.parametrize("labels", [("no", "yes"), (3, 1, 2), (False, True), (1.0, 0.0)])
def test_probabilities_are_those_of_the_sorted_classes(numbers, labels):
    X, y = rings(numbers, 60, labels=labels)
    model = small(num_inducing=40).partial_fit(X, y)
    probabilities = model.predict_proba(X)
    assert model.classes_.tolist() == sorted(labels)
    np.testing.assert_allclose(probabilities.sum(-1), 1.0, **rounding(torch.float64))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities, **rounding(torch.float64))
    np.testing.assert_array_equal(model.predict(X), model.classes_[probabilities.argmax(-1)])
    of_label = probabilities[np.arange(60), np.searchsorted(model.classes_, y)]
    # A label that never came has a share of one in as many rows, and one, which is not predicted.
    expected = np.log(of_label) + np.log(60 / 61)
    np.testing.assert_allclose(model.log_predictive_density(X, y), expected, **rounding(torch.float64))
    assert model.score(X, y) > 0.8


@pytest.mark.slow
def test_the_order_of_the_classes_does_not_matter(numbers):
    X, y = rings(numbers, 60)
    first = small().partial_fit(X, y, classes=["far", "middle", "near"])
    second = small().partial_fit(X, y, classes=["near", "far", "middle"])
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), **tolerance(torch.float64))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* outside the range of all rows")
def test_while_there_is_one_class_it_is_predicted_and_others_have_a_probability(numbers):
    X, _ = rings(numbers, 20)
    model = small().partial_fit(X, ["a"] * 20)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (20, 1)
    assert ((probabilities > 0.8) & (probabilities < 1.0)).all()
    assert set(model.predict(X)) == {"a"}
    np.testing.assert_allclose(model.log_predictive_density(X, ["b"] * 20), np.log1p(-probabilities[:, 0]))
    np.testing.assert_allclose(model.log_predictive_density(X, ["a"] * 20), np.log(probabilities[:, 0]))
    model.partial_fit(X + 9.0, ["b"] * 20)
    assert model.score(np.concatenate([X, X + 9.0]), ["a"] * 20 + ["b"] * 20) == 1.0


@pytest.mark.slow
def test_announced_classes_are_there_before_they_come(numbers):
    X, y = rings(numbers, 40, labels=("no", "yes"))
    model = small().partial_fit(X, y, classes=["maybe", "no", "yes"])
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    assert model.predict_proba(X)[:, 0].max() < 0.3
    model.partial_fit(X[:5], y[:5], classes=["later"])
    assert "later" in model.classes_


def test_samples_are_labels_with_the_predicted_frequencies(fitted):
    X, _, model = fitted
    draws = model.sample(X[:5], 4000, random_state=0)
    assert draws.shape == (4000, 5)
    frequencies = (draws[..., None] == model.classes_).mean(0)
    # The mean of normalized draws is not quite the normalized mean of draws.
    np.testing.assert_allclose(frequencies, model.predict_proba(X[:5]), **judgement(absolute=0.1))
    np.testing.assert_array_equal(draws, model.sample(X[:5], 4000, random_state=0))


@pytest.mark.slow
def test_the_kernel_of_the_user_is_not_changed(numbers):
    X, y = rings(numbers, 40)
    kernel = ScaleKernel(RBFKernel())
    before = deepcopy(kernel.state_dict())
    model = small(kernel=kernel).fit(X, y)
    assert model.kernel is kernel
    assert all(torch.equal(before[name], value) for name, value in kernel.state_dict().items())
    assert all(parameter.requires_grad for parameter in kernel.parameters())


@pytest.mark.slow
def test_both_links_give_nearly_the_same_probabilities(numbers):
    X, y = rings(numbers, 60, labels=("no", "yes"))
    logit, probit = small(warmup=60).fit(X, y), small(link="probit", warmup=60).fit(X, y)
    assert np.abs(logit.predict_proba(X) - probit.predict_proba(X)).mean() < 0.15
    with pytest.raises(OptionError, match="link must be one of 'probit', 'logit'"):
        small(link="cauchit").fit(X, y)


def test_copies_predict_the_same_and_clones_know_nothing(fitted):
    X, y, model = fitted
    first, second = deepcopy(model), pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(first.predict_proba(X), model.predict_proba(X))
    for one in (first, second):
        one.partial_fit(X[:3], y[:3])
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert model.num_seen_ == 30
    assert "state_" not in vars(clone(model))


def test_what_it_holds_can_be_looked_at(fitted):
    _, _, model = fitted
    assert model.num_seen_ == 30
    assert model.num_outside_ == model.num_drifts_ == 0
    assert len(model.inducing_points_) <= 8
    assert model.lengthscales_.shape == (2,)
    assert sum(model.expert_weights_.values()) == pytest.approx(1.0)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = small().classes_


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([[1.0, np.nan]], ["near"], ValueRangeError, "contains NaN"),
        ([[1.0]], ["near"], ValueRangeError, "has 1 features, but .* is expecting 2"),
        ([[1.0, 2.0]], [0.3], ValueRangeError, "Unknown label type"),
        ([["a", "b"]], ["near"], ValueRangeError, "could not convert string to float"),
        ([[1.0, 2.0]], [b"near"], DTypeError, "bytes is not supported"),
        ([[1.0, 2.0]], [7], ArgumentTypeError, "Labels must all be text or all be numbers"),
        ([[1.0, 2.0]], pd.Series([pd.NA]), ValueRangeError, "Labels must not be missing, but one is. Leave out rows"),
    ],
)
def test_a_bad_row_is_refused_with_a_sentence_and_changes_nothing(fitted, X, y, error, message):
    _, _, model = fitted
    state = model.state_
    with pytest.raises(error, match=message):
        model.partial_fit(X, y)
    assert model.state_ is state
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("repeated", [[1, 0], (1, 0), np.array([1, 0]), np.array([[1], [0]])])
def test_naming_the_classes_with_every_row_changes_nothing(repeated):
    X = np.random.default_rng(0).random((30, 2))
    y = (X[:, 0] > 0.5).astype(int)
    once, always = (small().partial_fit(X[:15], y[:15], classes=[1, 0]) for _ in range(2))
    for i in range(15, 30):
        once.partial_fit(X[i : i + 1], y[i : i + 1])
        always.partial_fit(X[i : i + 1], y[i : i + 1], classes=repeated)
    assert always.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(once.predict_proba(X), always.predict_proba(X))


@pytest.mark.parametrize(
    ("y", "classes", "error", "message"),
    [
        (
            ["a", None],
            None,
            ArgumentTypeError,
            "one is None. Leave out rows without a label",
        ),
        (["a", 1], None, ArgumentTypeError, "1 comes with 'a'"),
        (["a", "b"], [1, 2], ArgumentTypeError, "'a' comes with 1"),
        (["a", "b"], ["a", "b", None], ArgumentTypeError, "one is None"),
        ([0.0, 1.0], [0.0, 1.0, np.nan], ValueRangeError, "classes must be labels, but holds NaN"),
        (["a", "b"], {"a", "b"}, ValueRangeError, "classes must be a list or an array of labels, but is {"),
        (["a", "b"], "ab", ValueRangeError, "classes must be a list or an array of labels, but is 'ab'"),
    ],
)
def test_labels_that_cannot_be_sorted_together_are_refused_and_leave_no_trace(y, classes, error, message):
    model = sg.StreamingGPClassifier(num_inducing=5)
    with pytest.raises(error, match=message):
        model.partial_fit([[0.0], [1.0]], np.array(y, dtype=object if isinstance(y[0], str) else float), classes)
    assert not hasattr(model, "state_")


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", ["datetime64[D]", "datetime64[ns]", "datetime", "date", "Timestamp", "Series"])
def test_dates_are_labels_as_text_is_and_are_saved(tmp_path, kind, learn):
    X = np.random.default_rng(0).random((24, 2))
    days = np.array(["2024-01-31", "2024-01-01", "2024-02-01"], "datetime64[us]")
    y = days[(3 * X[:, 0]).astype(int)]
    text = np.datetime_as_string(y)
    given = {
        "datetime": y.tolist(),
        "date": [day.date() for day in y.tolist()],
        "Timestamp": [pd.Timestamp(day) for day in y],
        "Series": pd.Series(y),
    }
    given = given[kind] if kind in given else y.astype(kind)
    as_text = getattr(small(), learn)(X, text)
    model = getattr(small(), learn)(X, given)
    np.testing.assert_array_equal(model.classes_, np.sort(days))
    np.testing.assert_array_equal(model.predict_proba(X), as_text.predict_proba(X))
    np.testing.assert_array_equal(np.datetime_as_string(model.predict(X)), as_text.predict(X))
    np.testing.assert_array_equal(model.log_predictive_density(X, given), as_text.log_predictive_density(X, text))
    assert model.score(X, given) == as_text.score(X, text)
    model.save(tmp_path / "model")
    loaded = sg.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    for one in (loaded, model):
        one.partial_fit(X[:2], given[:2], classes=days)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ArgumentTypeError, match="all be dates"):
        model.partial_fit(X[:1], ["a"])


@pytest.mark.parametrize(
    ("make", "learn"),
    [(sg.StreamingGPRegressor, "fit"), (sg.StreamingGPClassifier, "fit"), (sg.StreamingGPClassifier, "partial_fit")],
)
def test_weights_of_rows_are_refused_and_do_not_seem_supported(make, learn):
    model = make(num_inducing=5)
    with pytest.raises(ArgumentTypeError, match=r"takes no sample_weight: all rows count alike. Leave it out; a row"):
        getattr(model, learn)([[0.0], [1.0]], [0, 1], sample_weight=[1.0, 2.0])
    assert not hasattr(model, "state_")
    assert not has_fit_parameter(model, "sample_weight")


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "row", [np.zeros((2, 1))[::-1][:1], np.zeros((1, 3))[:, ::-1][:, :1], np.zeros((4, 2))[::2, ::-2][:1]]
)
def test_a_single_row_may_have_any_strides(row):
    model = sg.StreamingGPClassifier().partial_fit(row, ["a"]).partial_fit(row, ["b"])
    assert model.predict(row).shape == (1,)
