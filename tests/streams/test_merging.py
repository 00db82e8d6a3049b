import warnings
from copy import deepcopy

import numpy as np
import pytest

import streamgp as sg
from streamgp.errors import ArgumentTypeError, OptionError, StreamGPWarning
from streamgp.testing.tolerances import judgement

GRID = np.linspace(0.0, 1.0, 6).reshape(-1, 1)


def rows(n, seed):
    """Rows at few places, all of which are inducing points after the first of each."""
    numbers = np.random.default_rng(seed)
    X = GRID[numbers.permutation(np.arange(n) % len(GRID))]
    return X, np.sin(5 * X[:, 0]) + 0.1 * numbers.standard_normal(n)


def started(**options):
    model = sg.StreamingGPRegressor(**{"num_inducing": 6, "warmup": 12, "refit": "never", "half_life": None, **options})
    return model.partial_fit(*rows(12, 0))


@pytest.fixture(scope="module")
def base():
    return started()


@pytest.fixture(scope="module")
def apart(base):
    return [deepcopy(base).partial_fit(*rows(9, seed)) for seed in (1, 2, 3)]


def test_merging_copies_is_learning_all_their_rows(base, apart):
    merged = apart[0].merge(apart[1:], base=base)
    whole = deepcopy(base)
    for seed in (1, 2, 3):
        whole.partial_fit(*rows(9, seed))
    mean, deviation = merged.predict(GRID, return_std=True)
    for ours, theirs in zip((mean, deviation), whole.predict(GRID, return_std=True), strict=True):
        within = 1e-5 if ours is mean else 0.05  # the scale of the noise forgets, and is averaged
        np.testing.assert_allclose(ours, theirs, **judgement(absolute=within))
    assert merged.num_seen_ == whole.num_seen_ == 39


def test_the_order_does_not_matter_and_nothing_is_changed(base, apart):
    before = [model.predict(GRID) for model in apart]
    one, two = apart[0].merge(apart[1:], base=base), apart[2].merge(apart[:2], base=base)
    assert np.allclose(one.predict(GRID), two.predict(GRID))
    assert all(np.array_equal(model.predict(GRID), old) for model, old in zip(apart, before, strict=True))


def test_without_a_base_shared_rows_count_several_times(base, apart):
    alone, twice = base.merge([]), base.merge([base])
    assert np.allclose(alone.predict(GRID), base.predict(GRID))
    assert (twice.predict(GRID, return_std=True)[1] < base.predict(GRID, return_std=True)[1]).all()
    assert np.allclose(base.merge([base, base], base=base).predict(GRID), base.predict(GRID))


def several_outputs(n, seed):
    X, y = rows(n, seed)
    return X, np.column_stack([y, 3.0 - 2.0 * y, X[:, 0] ** 2])


def test_several_outputs_are_merged_as_one_is(base):
    options = {"num_inducing": 6, "warmup": 12, "refit": "never", "half_life": None}
    start = sg.StreamingGPRegressor(**options).partial_fit(*several_outputs(12, 0))
    apart = [deepcopy(start).partial_fit(*several_outputs(9, seed)) for seed in (1, 2)]
    merged, whole = apart[0].merge(apart[1:], base=start), deepcopy(apart[0]).partial_fit(*several_outputs(9, 2))
    mean, deviation = merged.predict(GRID, return_std=True)
    for ours, theirs in zip((mean, deviation), whole.predict(GRID, return_std=True), strict=True):
        assert ours.shape == (6, 3)
        within = 1e-5 if ours is mean else 0.05  # the scale of the noise forgets, and is averaged
        np.testing.assert_allclose(ours, theirs, **judgement(absolute=within))
    with pytest.raises(OptionError, match="different numbers of outputs"):
        start.merge([base])


@pytest.mark.filterwarnings("ignore::streamgp.errors.StreamGPWarning")
def test_a_mixture_of_experts_is_merged_and_learns_on():
    base = started(half_life="auto")
    apart = [deepcopy(base).partial_fit(*rows(8, seed)) for seed in (1, 2)]
    merged = apart[0].merge(apart[1:], base=base)
    X, y = rows(30, 9)
    error = np.abs(merged.predict(X) - y).mean()
    assert error < 1.1 * max(np.abs(model.predict(X) - y).mean() for model in apart)
    assert sum(merged.expert_weights_.values()) == pytest.approx(1.0)
    assert merged.partial_fit(*rows(8, 3)).num_seen_ == 36


def test_different_points_are_carried():
    base = started(num_inducing=3)
    moved = deepcopy(base).partial_fit(GRID + 0.9, np.zeros(6)).partial_fit(GRID + 1.9, np.zeros(6))
    assert not np.array_equal(moved.inducing_points_, base.inducing_points_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamGPWarning)
        merged = base.merge([moved], base=base)
    assert len(merged.inducing_points_) <= 3
    assert np.abs(merged.predict(GRID + 1.9)).max() < 0.5


@pytest.mark.parametrize(
    ("other", "error", "sentence"),
    [
        (lambda base: started(half_life=50.0), OptionError, "differ in units or hyperparameters"),
        (
            lambda base: sg.StreamingGPRegressor(warmup=30).partial_fit(*rows(5, 0)),
            OptionError,
            "differ in units or hyperparameters",
        ),
        (lambda base: started().fit(*rows(12, 5)), OptionError, "differ in units or hyperparameters"),
        (lambda base: 3, ArgumentTypeError, "takes a list of StreamingGPRegressor, but got int"),
    ],
)
def test_models_of_other_things_are_refused(base, other, error, sentence):
    with pytest.raises(error, match=sentence):
        base.merge([other(base)])


def test_a_base_that_knows_more_is_refused(base, apart):
    with pytest.raises(OptionError, match="base has learned more rows"):
        base.merge([apart[0]], base=apart[1])


def labels(n, seed, *, num_classes):
    X, y = rows(n, seed)
    return X, np.digitize(y, [0.0, 0.6][: num_classes - 1])


@pytest.mark.parametrize("num_classes", [2, 3])
def test_classifiers_are_merged_as_their_beliefs_are(num_classes):
    options = {"num_inducing": 6, "warmup": 12, "refit": "never", "half_life": None}
    base = sg.StreamingGPClassifier(**options).partial_fit(*labels(12, 0, num_classes=num_classes))
    apart = [deepcopy(base).partial_fit(*labels(9, seed, num_classes=num_classes)) for seed in (1, 2)]
    whole = deepcopy(apart[0]).partial_fit(*labels(9, 2, num_classes=num_classes))
    merged, other = apart[0].merge(apart[1:], base=base), apart[1].merge(apart[:1], base=base)
    assert merged.num_seen_ == 30
    assert np.allclose(merged.predict_proba(GRID), other.predict_proba(GRID))
    # Labels have sites that hang on what else is known, so this is close, and not the same.
    gap = np.abs(whole.predict_proba(GRID) - base.predict_proba(GRID)).max()
    assert np.abs(merged.predict_proba(GRID) - whole.predict_proba(GRID)).max() < 0.25 * gap
    assert np.allclose(base.merge([base], base=base).predict_proba(GRID), base.predict_proba(GRID))


def test_classifiers_of_other_classes_are_refused():
    options = {"num_inducing": 6, "warmup": 12, "refit": "never"}
    one, two = (
        sg.StreamingGPClassifier(**options).partial_fit(*labels(12, 0, num_classes=number)) for number in (2, 3)
    )
    with pytest.raises(OptionError, match="different classes"):
        one.merge([two])
