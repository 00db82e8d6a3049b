import functools
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

from streamgp.errors import ArgumentTypeError, DTypeError, OptionError, ShapeError, ValueRangeError

pd = pytest.importorskip("pandas")
pytest.importorskip("river")

from river import checks, compose, datasets, dummy, evaluate, metrics, naive_bayes, preprocessing, stats  # noqa: E402

from streamgp.integrations.river import (  # noqa: E402
    StreamingGPClassifier,
    StreamingGPMultiTargetRegressor,
    StreamingGPRegressor,
)
from streamgp.storage import load  # noqa: E402
from streamgp.testing.tolerances import judgement, rounding, within  # noqa: E402


def frozen_kernel():
    kernel = ScaleKernel(RBFKernel())
    kernel.outputscale = 4.0
    return kernel.requires_grad_(False)


def regressor(**options):
    return StreamingGPRegressor(**{"num_inducing": 8, "warmup": 8, "refit": "never"} | options)


def classifier(**options):
    options = {"num_inducing": 8, "warmup": 4, "refit": "never", "kernel": frozen_kernel()} | options
    return StreamingGPClassifier(**options)


# How many rows a check of river takes to learn from before it compares; others see a warm-up and some rows after it.
NUM_ROWS = {
    "check_bounded_memory_growth": 32,
    "check_predict_many_matches_predict_one": 20,
    "check_predict_proba_many_matches_predict_proba_one": 20,
    "check_radically_disappearing_features": 24,
}


def checks_for(make):
    """The checks of river that apply, each with a model: one belief on one data set, and the default on all of them."""
    applicable = [each for each in checks.yield_checks(make()) if each.__name__ not in make()._unit_test_skips()]
    once = {check.__name__: check for check in reversed(applicable)}
    # That memory is bounded is a law of streams, which this check repeats over thousands of rows.
    marks = {"check_bounded_memory_growth": [pytest.mark.thorough]}
    parameters = [
        pytest.param(make(half_life=None), check, id=name, marks=marks.get(name, [])) for name, check in once.items()
    ]
    others = (each for each in checks.yield_checks(make()) if each.__name__ in once)
    return parameters + [
        pytest.param(make(), check, id=f"default-{check.__name__}", marks=pytest.mark.thorough) for check in others
    ]


def shortened(check):
    """A check of river on the first rows of its data."""
    if isinstance(check, functools.partial):
        num_rows = NUM_ROWS.get(check.__name__, 8)
        check.keywords["dataset"] = rows = list(itertools.islice(check.keywords["dataset"], num_rows))
        if check.__name__ == "check_emerging_features" and len(rows[0][0]) <= 3:
            pytest.skip("it would leave no feature")
    return check


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The rows have no columns")  # which columns a check takes away is chance
@pytest.mark.parametrize(("model", "check"), checks_for(regressor))
def test_the_regressor_passes_the_checks_of_river(model, check):
    shortened(check)(model)


def multi_target_regressor(**options):
    return StreamingGPMultiTargetRegressor(**{"num_inducing": 8, "warmup": 8, "refit": "never"} | options)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The rows have no columns")  # which columns a check takes away is chance
@pytest.mark.parametrize(("model", "check"), checks_for(multi_target_regressor))
def test_the_regressor_of_several_targets_passes_the_checks_of_river(model, check):
    shortened(check)(model)


def test_several_targets_are_predicted_by_name():
    X, y = rows_of(14)
    model = multi_target_regressor()
    assert model.predict_one({"a": 1.0}) == {}
    for x, target in zip(X.to_dict("records"), y, strict=True):
        model.learn_one(x, {"low": target, "high": target + 10.0})
    predicted = model.predict_one({"a": 0.5, "b": 0.5})
    assert predicted["low"] == pytest.approx(-0.5, **within(judgement(absolute=0.3)))
    assert predicted["high"] == pytest.approx(9.5, **within(judgement(absolute=0.3)))
    assert model.forecast_one({"a": 0.5, "b": 0.5}).quantiles([0.05, 0.95]).shape == (1, 2, 2)
    assert model.score_report().num_rows == 13
    before = model.predict_one({"a": 0.1, "b": 0.2})
    model.learn_one({"a": 0.5, "b": 0.5}, {"high": 9.5, "low": -0.5})
    with pytest.raises(ValueRangeError, match=r"y must have the targets \['low', 'high'\], .* but has \['other'\]"):
        model.learn_one({"a": 0.5}, {"other": 1.0})
    model.learn_one({"a": 0.5, "b": 0.5}, {"low": -0.5, "high": float("nan")})
    assert model.score_report().num_rows == 14  # of those all of whose targets are known
    assert model.predict_one({"a": 0.1, "b": 0.2}) == pytest.approx(before, **within(judgement(absolute=0.3)))


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (1.0, ArgumentTypeError, "y must be a dictionary with a number for each target, but is 1.0"),
        ({}, ValueRangeError, "but has \\[\\]"),
        (
            {"low": float("inf"), "high": 1.0},
            ValueRangeError,
            "The target 'low' must be a finite number, or NaN .* is inf",
        ),
        ({"low": 0.0, "high": "x"}, ValueRangeError, "The target 'high' must be a finite number, or NaN .* is 'x'"),
    ],
)
def test_bad_targets_are_refused_with_a_sentence_and_change_nothing(y, error, message):
    model, x = multi_target_regressor(), {"a": 0.5, "b": 0.5}
    with pytest.raises(error, match=message):
        model.learn_one(x, y)
    assert model.predict_one(x) == {}
    model.learn_one(x, {"low": 0.0, "high": 1.0})
    before = model.predict_one(x)
    with pytest.raises(error, match=message):
        model.learn_one(x, y)
    assert model.predict_one(x) == before


def test_two_threads_lose_no_row():
    X, y = rows_of(16)
    model = regressor(half_life=None)
    records = X.to_dict("records")

    def learn(start):
        for i in range(start, 16, 2):
            model.learn_one(records[i], y.iloc[i])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(learn, (0, 1)))
    assert model._stream.num_seen_ == 16


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The rows have no columns")  # which columns a check takes away is chance
@pytest.mark.parametrize(("model", "check"), checks_for(classifier))
def test_the_classifier_passes_the_checks_of_river(model, check):
    shortened(check)(model)


@pytest.mark.slow
def test_the_regressor_runs_in_a_pipeline_and_beats_the_mean():
    model = preprocessing.StandardScaler() | regressor(warmup=50, num_inducing=20)
    ours = evaluate.progressive_val_score(datasets.TrumpApproval().take(150), model, metrics.MAE())
    baseline = compose.Pipeline(preprocessing.StandardScaler(), dummy.StatisticRegressor(stats.Mean()))
    theirs = evaluate.progressive_val_score(datasets.TrumpApproval().take(150), baseline, metrics.MAE())
    assert ours.get() < 0.7 * theirs.get()


@pytest.mark.slow
def test_the_classifier_runs_in_a_pipeline_and_is_as_good_as_naive_bayes_after_the_warm_up():
    rows, scores = list(datasets.Phishing().take(150)), []
    for model in (classifier(warmup=50, num_inducing=20, kernel=None), naive_bayes.GaussianNB()):
        pipeline = preprocessing.StandardScaler() | model
        evaluate.progressive_val_score(rows[:50], pipeline, metrics.Accuracy())
        scores.append(evaluate.progressive_val_score(rows[50:], pipeline, metrics.Accuracy()).get())
    assert scores[0] > scores[1] - 0.05


def rows_of(n):
    numbers = np.random.default_rng(0)
    X = pd.DataFrame(numbers.random((n, 2)), columns=["a", "b"], index=range(100, 100 + n))
    return X, X["a"] - 2.0 * X["b"]


def test_rows_are_scored_before_they_are_learned():
    X, y = rows_of(12)
    for model, targets in ((regressor(), y), (classifier(), y > -0.5)):
        model.learn_many(X[:6], targets[:6])
        before = model.score_report().num_rows
        for x, target in zip(X[6:].to_dict("records"), targets[6:], strict=True):
            model.learn_one(x, target)
        assert model.score_report().num_rows == before + 6
        assert len(repr(model.score_report()).splitlines()) > 5


def test_before_the_first_row_it_predicts_nothing_in_particular():
    X, _ = rows_of(3)
    assert regressor().predict_one({"a": 1.0}) == 0.0
    assert regressor().predict_many(X).tolist() == [0.0] * 3
    assert classifier().predict_one({"a": 1.0}) is None
    assert classifier().predict_proba_one({"a": 1.0}) == {}
    assert classifier().predict_many(X).empty


@pytest.mark.slow
def test_blocks_of_rows_keep_their_index():
    X, y = rows_of(20)
    model = regressor()
    model.learn_many(X, y)
    assert model.predict_many(X).index.tolist() == X.index.tolist()
    assert abs(model.predict_many(X) - y).max() < 0.1
    model = classifier()
    model.learn_many(X, y > -0.5)
    probabilities = model.predict_proba_many(X)
    assert set(probabilities.columns) == {False, True}
    assert probabilities.index.tolist() == X.index.tolist()
    assert (model.predict_many(X) == (y > -0.5)).mean() > 0.8


@pytest.mark.slow
def test_many_rows_of_three_classes_are_predicted_as_one_by_one():
    X, y = rows_of(12)
    model = classifier()
    model.learn_many(X, pd.cut(y, 3, labels=["low", "middle", "high"]).astype(str))
    many, one = model.predict_proba_many(X), [model.predict_proba_one(x) for x in X.to_dict("records")]
    pd.testing.assert_frame_equal(many, pd.DataFrame(one, index=X.index))
    assert model.predict_many(X).tolist() == [model.predict_one(x) for x in X.to_dict("records")]


def test_timestamps_are_the_same_labels_in_blocks_and_one_by_one(tmp_path):
    X, y = rows_of(8)
    days = pd.Series(pd.to_datetime(np.where(y > y.median(), "2024-01-01", "2024-02-01")).astype("M8[ns]"), y.index)
    model = classifier()
    model.learn_many(X, days)
    model.learn_one(X.iloc[0].to_dict(), days.iloc[0])
    model.learn_one(X.iloc[1].to_dict(), days.to_numpy()[1])
    assert set(model.predict_proba_one({"a": 0.5})) == set(days)
    assert model.predict_many(X).isin(days).all()
    model._stream.save(tmp_path / "stream.sgp")
    assert load(tmp_path / "stream.sgp").classes_ == model._stream.classes_


def test_a_missing_label_is_refused_and_changes_nothing():
    X, y = rows_of(8)
    model = classifier()
    for label in (None, float("nan"), pd.NA):
        with pytest.raises(ValueRangeError, match="must not be missing"):
            model.learn_one({"a": 1.0}, label)
    with pytest.raises(ValueRangeError, match="must not be missing"):
        model.learn_many(X, (y > 0.0).astype("boolean").where(y > -0.5))
    assert model.predict_proba_one({"a": 1.0}) == {}


def test_a_missing_feature_is_replaced_by_its_mean_so_far():
    X, y = rows_of(20)
    model = regressor()
    model.learn_many(X, y)
    expected = model.predict_one({"a": 0.3, "b": float(X["b"].mean())})
    assert model.predict_one({"a": 0.3}) == pytest.approx(expected, **within(rounding(torch.float64, condition=1e3)))


@pytest.mark.slow
def test_a_new_feature_becomes_an_input_during_the_warm_up():
    X, y = rows_of(24)
    model = regressor(warmup=20)
    model.learn_many(X[["a"]][:3], y[:3])
    model.learn_many(X[3:], y[3:])
    assert model.num_ignored == 0
    # The difference is 1.6; the rows before it came, which got its first value, make it seem smaller.
    assert model.predict_one({"a": 0.5, "b": 0.1}) > model.predict_one({"a": 0.5, "b": 0.9}) + 0.5


def test_a_new_feature_after_the_warm_up_is_ignored_and_counted():
    X, y = rows_of(20)
    model = regressor()
    model.learn_many(X, y)
    before = model.predict_one({"a": 0.5, "b": 0.5})
    assert model.predict_one({"a": 0.5, "b": 0.5, "c": 9.0}) == before
    model.learn_one({"a": 0.5, "b": 0.5, "c": 9.0}, -0.5)
    model.learn_one({"a": 0.5, "b": 0.5, "c": 9.0, "d": 1.0}, -0.5)
    assert model.num_ignored == 3


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"a": "red", "b": 1.0}, "the feature 'a' is 'red' and not a number"),
        ({"a": float("inf"), "b": 1.0}, "the feature 'a' is not finite"),
    ],
)
def test_a_bad_row_is_refused_with_a_sentence_and_changes_nothing(x, message):
    X, y = rows_of(10)
    model, row = regressor(), {"a": 0.5, "b": 0.5}
    model.learn_many(X, y)
    before = model.forecast_one(row).quantiles([0.1, 0.9]).tolist()
    with pytest.raises(ValueRangeError, match=message):
        model.learn_one(x, 1.0)
    with pytest.raises(ValueRangeError, match="y must be finite"):
        model.learn_one({"a": 1.0}, float("nan"))
    with pytest.raises(DTypeError, match="y must be one number, but is 'red'"):
        model.learn_one({"a": 1.0}, "red")
    with pytest.raises(DTypeError, match=r"y must be one number, but is \[1.0, 2.0\]. For several, take"):
        model.learn_one({"a": 1.0}, [1.0, 2.0])
    assert model.forecast_one(row).quantiles([0.1, 0.9]).tolist() == before


def test_bad_blocks_and_options_are_refused():
    X, y = rows_of(5)
    with pytest.raises(ValueRangeError, match="'b' is 'red' and not a number"):
        regressor().learn_many(X.assign(b="red"), y)
    with pytest.raises(ShapeError, match="one target for each of the 5 rows"):
        regressor().learn_many(X, y[:3])
    with pytest.raises(OptionError, match="There are no features"):
        regressor().learn_one({}, 1.0)
    with pytest.raises(OptionError, match="refit must be 'auto', 'background', 'doubling', 'never'"):
        regressor(refit="sometimes")
    with pytest.raises(ArgumentTypeError, match="takes a row and nothing else"):
        classifier().predict_proba_one({"a": 1.0}, depth=3)
