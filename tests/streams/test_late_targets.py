"""Late targets, horizons, weights, explanations, tables and pictures of the estimators, and what is refused."""

import copy

import numpy as np
import pytest
import torch

import streamgp as sg
from streamgp.errors import OptionError, ShapeError, ValueRangeError
from streamgp.testing.tolerances import judgement, rounding, within


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(6.0 * X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def learned():
    return sg.StreamingGPRegressor(max_inducing=40).partial_fit(*rows(130))


def test_rows_of_a_block_are_learned_and_scored_one_after_the_other():
    X, y = rows(70)
    once = sg.StreamingGPRegressor().partial_fit(X, y)
    parts = sg.StreamingGPRegressor()
    for i in range(70):
        parts.partial_fit(X[i : i + 1], y[i : i + 1])
    np.testing.assert_allclose(once.predict(X), parts.predict(X), **rounding(torch.float64, condition=1e4))
    for name, value in once.score_report().metrics.items():
        assert value == pytest.approx(parts.score_report().metrics[name], **within(judgement(relative=1e-6))), name


def test_late_targets_are_judged_by_what_was_said(learned):
    model = copy.deepcopy(learned)
    X, y = rows(3, seed=1)
    ticket = model.expect(X)
    said = ticket.prediction.mean
    np.testing.assert_array_equal(said, learned.predict(X, horizon=[1, 2, 3]))
    before = model.score_report().num_rows
    model.learn(ticket, y)
    assert model.score_report().num_rows == before + 3
    assert model.num_seen_ == 133


def test_a_target_that_never_comes_is_left_out(learned):
    model = copy.deepcopy(learned)
    X, y = rows(2, seed=1)
    model.learn(model.expect(X), [y[0], np.nan])
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueRangeError, match="holds infinity"):
        model.learn(model.expect(X), [0.0, np.inf])
    with pytest.raises(ShapeError, match="one target for each of the 2 rows"):
        model.learn(model.expect(X), [0.0])


def test_forecasts_change_gradually_with_the_horizon():
    t = np.arange(150.0)[:, None]
    model = sg.StreamingGPRegressor().partial_fit(t, np.sin(0.3 * t[:, 0]) + 0.01 * t[:, 0])
    ahead = model.predict(150.0 + np.arange(48.0)[:, None], horizon=np.arange(1, 49))
    assert np.abs(np.diff(ahead)).max() < 0.6
    with pytest.raises(ValueRangeError, match="horizon must be a whole number"):
        model.predict(t[:1], horizon=0)
    with pytest.raises(ShapeError, match="horizon must be"):
        model.predict(t[:2], horizon=[1, 2, 3])


def test_a_row_of_large_weight_is_believed(learned):
    X = np.array([[0.5, 0.5]])
    light, heavy = (
        copy.copy(learned).partial_fit(X, [3.0], sample_weight=[weight]).predict(X)[0] for weight in (1e-6, 1e3)
    )
    assert abs(light - learned.predict(X)[0]) < 0.05
    assert heavy > light + 0.5
    with pytest.raises(ValueRangeError, match="positive and finite"):
        copy.copy(learned).partial_fit(X, [3.0], sample_weight=[0.0])


def test_a_prediction_is_explained(learned):
    X, y = rows(130)
    (why,) = learned.explain(X[129:])
    assert sum(each.weight for each in why.experts) == pytest.approx(1.0)
    assert sum(each.weight * each.mean for each in why.experts) == pytest.approx(learned.predict(X[129:])[0])
    assert why.nearest[0].target == y[129]
    assert why.nearest[0].rows_ago == 1
    assert "last value" in str(why)
    assert not why.is_far_out
    assert learned.history_[-1].row == 128


def test_copies_are_apart(learned):
    before = learned.predict([[0.5, 0.5]])
    copy.copy(learned).partial_fit([[0.5, 0.5]], [9.0])
    np.testing.assert_array_equal(learned.predict([[0.5, 0.5]]), before)


def test_several_targets_have_learners_of_their_own(tmp_path):
    X, y = rows(60)
    model = sg.StreamingGPRegressor().partial_fit(X, np.c_[y, 100.0 - y])
    mean, deviation, quantiles = model.predict(X, return_std=True, quantiles=[0.1, 0.9])
    assert mean.shape == deviation.shape == (60, 2)
    assert quantiles.shape == (60, 2, 2)
    np.testing.assert_allclose(mean[:, 1], 100.0 - mean[:, 0], **judgement(absolute=0.2))
    assert model.sample(X[:3], 4, random_state=0).shape == (4, 3, 2)
    model.save(tmp_path / "two.sgp")
    np.testing.assert_array_equal(sg.load(tmp_path / "two.sgp").predict(X), mean)


def test_one_of_several_targets_may_be_missing():
    X, y = rows(60)
    both = np.c_[y, 100.0 - y]
    both[::5, 1] = np.nan
    model = sg.StreamingGPRegressor().partial_fit(X, both)
    alone = sg.StreamingGPRegressor().partial_fit(X, y)
    np.testing.assert_allclose(model.predict(X)[:, 0], alone.predict(X), **rounding(torch.float64, condition=1e4))
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueRangeError, match="contains NaN"):
        alone.partial_fit(X[:2], [1.0, np.nan])


def test_a_covariance_is_that_of_joint_draws(learned):
    X = np.array([[0.2, 0.2], [0.25, 0.2], [0.9, 0.9]])
    mean, covariance = learned.predict(X, return_cov=True)
    draws = learned.sample(X, 20000, random_state=0)
    np.testing.assert_allclose(np.cov(draws.T), covariance, **judgement(absolute=0.1 * covariance.max()))
    np.testing.assert_array_equal(mean, learned.predict(X))
    with pytest.raises(OptionError, match="Either return_std or return_cov"):
        learned.predict(X, return_std=True, return_cov=True)


def test_a_table_keeps_its_index(learned):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([[0.1, 0.2], [0.3, 0.4]], index=["first", "second"])
    said = learned.predict(table, output="frame")
    assert said.index.tolist() == ["first", "second"]
    assert list(said.columns) == ["mean", "std", "5 %", "95 %"]
    np.testing.assert_array_equal(said["mean"], learned.predict(table.to_numpy()))
    assert list(learned.predict(table, quantiles=[0.5], output="frame").columns) == ["mean", "std", "50 %"]
    with pytest.raises(OptionError, match="output must be 'array' or 'frame'"):
        learned.predict(table, output="table")


def test_coverage_is_counted_by_how_far_ahead_it_was_said(learned):
    model = copy.deepcopy(learned)
    X, y = rows(9, seed=2)
    before = model.score_report().coverage_by_horizon["1"][0]
    model.learn(model.expect(X), y)
    found = model.score_report().coverage_by_horizon
    assert {name: count for name, (count, _) in found.items()} == {
        "1": before + 1,
        "2 to 3": 2,
        "4 to 7": 4,
        "8 to 15": 2,
    }
    assert "coverage 4 to 7 rows ahead" in repr(model.score_report())


def test_the_history_is_drawn(learned):
    figure = learned.plot_history()
    latest, errors, weights, points = figure.axes[:4]
    assert len(latest.lines[0].get_xdata()) == 129
    assert latest.collections
    assert [line.get_label() for line in errors.lines[:3]] == ["model", "running mean", "last value"]
    assert weights.get_ylabel() == "weights of experts"
    assert points.get_ylabel() == "inducing points"
    assert sum(line.get_label() == "refit" for line in latest.lines) == 1


def test_refits_may_go_to_the_background_while_a_stream_runs(learned, tmp_path):
    learned.save(tmp_path / "a")
    model = sg.load(tmp_path / "a").set_refit("background")
    assert model.get_params()["refit"] == "background"
    assert not model.is_refitting_
    X, y = rows(100, seed=3)
    model.partial_fit(X, y)
    assert model.num_seen_ == 230
    with pytest.raises(OptionError, match="refit must be"):
        model.set_refit("sometimes")
