import math

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import log_loss

import streamgp as sg
from streamgp.errors import ShapeError
from streamgp.streams.predictive import Forecast
from streamgp.streams.report import ScoreReport
from streamgp.streams.score import ClassScore, ValueScore

OPTIONS = {"num_inducing": 5, "warmup": 6, "refit": "never"}


@pytest.fixture(scope="module")
def regression():
    """Rows one by one: a model, and what it predicted of each before."""
    numbers = np.random.default_rng(0)
    X = numbers.random((20, 2))
    y = np.sin(5 * X[:, 0]) + 0.1 * numbers.standard_normal(20)
    model, told = sg.StreamingGPRegressor(**OPTIONS), []
    for i in range(20):
        rows = slice(i, i + 1)
        if i:
            mean, band = model.predict(X[rows], quantiles=[0.05, 0.95])
            told.append((mean[0], *band[0], model.log_predictive_density(X[rows], y[rows])[0]))
        model.partial_fit(X[rows], y[rows])
    return model, y, np.array(told)


def test_metrics_are_those_of_predictions_before_each_row_was_learned(regression):
    model, y, told = regression
    mean, lower, upper, density = told.T
    metrics, y_next = model.score_report().metrics, y[1:]
    assert metrics["RMSE"] == pytest.approx(math.sqrt(np.mean((y_next - mean) ** 2)))
    assert metrics["MAE"] == pytest.approx(np.mean(np.abs(y_next - mean)))
    assert metrics["NLPD"] == pytest.approx(-np.mean(density))
    assert metrics["coverage of 90 %"] == pytest.approx(np.mean((lower <= y_next) & (y_next <= upper)))
    assert metrics["MAE of the last value"] == pytest.approx(np.mean(np.abs(np.diff(y))))
    means = np.cumsum(y)[:-1] / np.arange(1, 20)
    assert metrics["MAE of the running mean"] == pytest.approx(np.mean(np.abs(y_next - means)))


def test_the_table_names_each_metric_once(regression):
    report = regression[0].score_report()
    lines = repr(report).splitlines()
    assert lines[0] == "19 rows, each predicted before it was learned"
    assert [line.strip().rsplit("  ", 1)[0].strip() for line in lines[1:]] == list(report.metrics)
    assert report._repr_html_().count("<tr>") == len(report.metrics)


def test_the_plot_takes_and_returns_axes(regression):
    axes = Figure().subplots(1, 2)
    report = regression[0].score_report()
    assert report.plot(axes) is axes
    assert axes[0].lines[1].get_ydata()[-1] == pytest.approx(1.0)
    assert [line.get_label() for line in axes[1].lines] == ["model", "running mean", "last value"]
    assert axes[1].lines[0].get_xdata()[-1] == 19
    with pytest.raises(ShapeError, match="axes must be two, for the calibration and for the metrics, but are 1"):
        report.plot(axes[:1])


def test_the_score_is_saved_with_the_estimator_and_begins_anew_with_fit(regression, tmp_path):
    model = regression[0]
    model.save(tmp_path / "a")
    assert sg.load(tmp_path / "a").score_report() == model.score_report()
    fresh = sg.StreamingGPRegressor(**OPTIONS).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    assert fresh.score_report().num_rows == 0
    assert math.isnan(fresh.score_report().metrics["MAE"])
    fresh.score_report().plot(Figure().subplots(1, 2))
    # The first row after them is what baselines begin with.
    assert fresh.partial_fit([[3.0]], [3.0]).partial_fit([[4.0]], [4.0]).score_report().num_rows == 1


def test_labels_after_fit_are_scored_from_the_second_on():
    model = sg.StreamingGPClassifier(**OPTIONS).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    assert model.partial_fit([[3.0]], [1]).partial_fit([[4.0]], [0]).score_report().num_rows == 1


def test_labels_are_scored_and_those_never_seen_too():
    X, y = np.arange(14.0).reshape(-1, 1) % 4, np.array(["a", "b", "a", "a"] * 3 + ["new", "new"])
    model = sg.StreamingGPClassifier(**OPTIONS)
    expected, correct = [], []
    for i in range(14):
        rows = slice(i, i + 1)
        if i:
            expected.append(-model.log_predictive_density(X[rows], y[rows])[0])
            correct.append(float(model.predict(X[rows])[0] == y[i]))
        model.partial_fit(X[rows], y[rows])
    metrics = model.score_report().metrics
    assert metrics["log loss"] == pytest.approx(np.mean(expected))
    assert metrics["accuracy"] == pytest.approx(np.mean(correct))
    assert metrics["accuracy of the last class"] == pytest.approx(np.mean(y[1:] == y[:-1]))
    axes = model.score_report().plot(Figure().subplots(1, 2))
    assert axes[1].get_ylabel() == "accuracy"


def test_the_reliability_of_classes_is_the_share_that_came_true():
    probabilities = np.array([[0.9, 0.1]] * 10)
    labels = ["a"] * 9 + ["b"]
    score = ClassScore()
    score.add(["a"])
    score.add(labels, ["a", "b"], probabilities)
    assert [tuple(map(round, each, (6,) * 3)) for each in score.calibration.reliability()] == [
        (0.1, 0.1, 10),
        (0.9, 0.9, 10),
    ]
    assert log_loss(labels, probabilities) > 0  # both classes came


def test_counts_are_scored_by_half_of_their_own_probability():
    numbers = np.random.default_rng(1)
    X, y = numbers.random((24, 1)), numbers.poisson(2.0, 24)
    model = sg.StreamingGPRegressor("poisson", **OPTIONS).partial_fit(X[:12], y[:12]).partial_fit(X[12:], y[12:])
    score = model.state_.score
    assert score.is_discrete
    assert sum(score.calibration.counts) == score.metrics.num_rows


def test_memory_is_constant():
    score, n = ValueScore(), 3000
    y, ones = np.zeros((n, 1)), np.ones((n, 1))
    score.add(y, [[(np.arange(n), Forecast(0.0 * ones, ones, 9.0 * ones, ones))]])
    assert len(score.metrics.history) <= 512
    assert "90 % intervals held 100% of 2999 targets: they are wider than needed." in repr(ScoreReport(score))


def test_estimators_are_small_tables_without_scripts_in_notebooks(regression):
    table = regression[0]._repr_html_()
    assert "<th" in table
    assert "rows learned" in table
    assert "<script" not in table + sg.StreamingGPClassifier(link="<script>")._repr_html_()
    assert regression[0]._repr_mimebundle_()["text/plain"] == repr(regression[0])


def test_the_histogram_of_probabilities_has_mass_one(regression):
    report = regression[0].score_report()
    edges, density = report.pit_histogram
    assert (density * np.diff(edges)).sum() == pytest.approx(1.0)
    assert report.plot_pit(Figure().subplots()).get_ylabel() == "density"


def test_targets_that_look_like_counts_are_told():
    X, y = np.random.default_rng(0).random((60, 1)), np.random.default_rng(1).poisson(3.0, 60)
    model = sg.StreamingGPRegressor(**OPTIONS).partial_fit(X, y)
    assert "All 60 targets are whole numbers, none negative." in repr(model.score_report())
    assert "whole numbers" not in repr(model.partial_fit(X[:1], [0.5]).score_report())
