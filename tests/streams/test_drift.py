import numpy as np
import pytest
from gpytorch.kernels import RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.errors import ArgumentTypeError, OptionError
from streamgp.storage import load, save
from streamgp.streams.drift import DriftWatch

drift = pytest.importorskip("river.drift")


@pytest.fixture
def numbers():
    return np.random.default_rng(20_230_517)


class Threshold:
    """A detector that finds a change whenever a value is above 5."""

    def __init__(self):
        self.values = []

    @property
    def drift_detected(self):
        return bool(self.values) and self.values[-1] > 5.0

    def update(self, x):
        self.values.append(x)


def small(kind, **options):
    kernel = ScaleKernel(RBFKernel())
    kernel.outputscale = 4.0
    options = {"kernel": kernel.requires_grad_(False), "num_inducing": 10, "warmup": 20, "refit": "never"} | options
    return kind(**options)


def changing(numbers, n, *, change):
    """A function whose sign flips at a row."""
    X = numbers.random((n, 1))
    f = 3.0 * np.sin(6.0 * X[:, 0])
    f[change:] *= -1.0
    return X, f, f + 0.2 * numbers.standard_normal(n)


def errors_of(model, X, f, y, *, block):
    """Learn a stream, and return the absolute errors of the predictions before each block."""
    model.partial_fit(X[:40], y[:40])
    errors = []
    for start in range(40, len(y), block):
        part = slice(start, start + block)
        errors.append(np.abs(model.predict(X[part]) - f[part]))
        model.partial_fit(X[part], y[part])
    return np.concatenate(errors)


@pytest.mark.slow
@pytest.mark.parametrize("on_drift", ["reset", "rewarm"])
@pytest.mark.parametrize(("make", "block"), [("ADWIN", 10), pytest.param("PageHinkley", 1, marks=pytest.mark.thorough)])
def test_after_an_abrupt_change_the_errors_recover_much_faster(numbers, on_drift, make, block):
    X, f, y = changing(numbers, 400, change=240)
    detector = drift.ADWIN() if make == "ADWIN" else drift.PageHinkley(threshold=20.0)
    # A belief that does not forget by itself.
    watched = small(sg.StreamingGPRegressor, drift_detector=detector, on_drift=on_drift, half_life=None)
    late = errors_of(watched, X, f, y, block=block)[-50:].mean()
    without = errors_of(small(sg.StreamingGPRegressor, half_life=None), X, f, y, block=10)[-50:].mean()
    assert watched.num_drifts_ == 1
    assert watched.num_seen_ == 400
    assert late < 0.3 < 0.25 * without


@pytest.mark.slow
@pytest.mark.parametrize("make", ["ADWIN", "PageHinkley"])
def test_there_is_no_alarm_on_a_stream_that_stays(numbers, make):
    X, f, y = changing(numbers, 600, change=600)
    model = small(sg.StreamingGPRegressor, drift_detector=getattr(drift, make)())
    errors_of(model, X, f, y, block=20)
    assert model.num_drifts_ == 0


@pytest.mark.slow
def test_a_classifier_notices_that_labels_were_exchanged(numbers):
    X = numbers.random((400, 1))
    y = (X[:, 0] > 0.5) ^ (np.arange(400) >= 200)
    model = small(sg.StreamingGPClassifier, drift_detector=drift.ADWIN())
    for start in range(0, 400, 20):
        model.partial_fit(X[start : start + 20], y[start : start + 20])
    assert model.num_drifts_ == 1
    assert model.score(X[300:], y[300:]) > 0.9


def test_the_rows_after_the_change_are_learned_by_the_new_model(numbers):
    X = numbers.random((30, 1))
    model = small(sg.StreamingGPRegressor, drift_detector=Threshold(), on_drift="rewarm").partial_fit(X, X[:, 0])
    y = np.concatenate([X[:4, 0], 50.0 + np.zeros(6)])
    model.partial_fit(X[:10], y)
    learner = model.state_.learners[0]
    assert model.num_drifts_ == 1
    assert model.num_seen_ == 40
    assert learner.num_since_start == 6
    assert learner.buffer.targets[: learner.buffer.num_rows].tolist() == [50.0] * 6


def test_the_given_detector_is_never_changed(numbers):
    detector, X = Threshold(), numbers.random((40, 1))
    model = small(sg.StreamingGPRegressor, drift_detector=detector).partial_fit(X[:30], X[:30, 0])
    model.partial_fit(X[30:], X[30:, 0])
    assert detector.values == []
    assert len(model.state_.watch._detector.values) == 10  # none of the warm-up


def test_a_row_that_is_refused_is_not_shown_to_the_detector(numbers):
    X = numbers.random((40, 1))
    model = small(sg.StreamingGPRegressor, likelihood="poisson", drift_detector=Threshold())
    model.partial_fit(X[:30], np.ones(30))
    with pytest.raises(ValueError, match="must be"):
        model.partial_fit(X[30:32], [1.0, -1.0])
    assert model.state_.watch._detector.values == []


def test_a_change_for_the_better_is_not_acted_upon():
    watch = DriftWatch(drift.ADWIN(), "reset", is_label=False)
    assert watch.inspect([1.0] * 200 + [0.0] * 200) is None
    assert watch.inspect([1.0] * 400) is not None


def test_after_a_change_the_detector_starts_afresh():
    watch = DriftWatch(Threshold(), "reset", is_label=False)
    assert watch.inspect([1.0, 2.0, 9.0, 9.0]) == 2
    assert watch.num_drifts == 1
    assert watch._detector.values == []


def test_options_are_checked(numbers):
    with pytest.raises(ArgumentTypeError, match=r"must have a method update\(value\) and a property drift_detected"):
        small(sg.StreamingGPRegressor, drift_detector=3).fit([[1.0]], [1.0])
    with pytest.raises(OptionError, match="on_drift must be one of 'rewarm', 'reset'"):
        small(sg.StreamingGPRegressor, drift_detector=Threshold(), on_drift="stop").fit([[1.0]], [1.0])


class OfShares:
    """A detector that takes errors between zero and one, as river's for classes do."""

    drift_detected = False

    def update(self, x):
        if x > 1.0:
            raise ValueError("math domain error")


def test_a_detector_that_does_not_take_an_error_is_named():
    watch = DriftWatch(OfShares(), "reset", is_label=False)
    with pytest.raises(
        OptionError, match=r"a OfShares, does not take the error 1.5 \(math domain error\). Detectors of"
    ):
        watch.inspect([0.5, 1.5])


ERRORS = [0.1] * 40 + [9.0] * 30 + [0.1] * 30


def test_a_watch_that_was_saved_finds_the_changes_of_one_that_was_not(tmp_path):
    whole = DriftWatch("page_hinkley", "reset", is_label=False)
    found = [row for row, error in enumerate(ERRORS) if whole.inspect([error]) is not None]
    for stop in (10, 45, 60):
        watch = DriftWatch("page_hinkley", "reset", is_label=False)
        before = [row for row, error in enumerate(ERRORS[:stop]) if watch.inspect([error]) is not None]
        save(watch, tmp_path / "a")
        after = load(tmp_path / "a")
        assert [*before, *(stop + i for i, e in enumerate(ERRORS[stop:]) if after.inspect([e]) is not None)] == found
        assert after.num_drifts == whole.num_drifts


def test_the_memory_of_errors_is_bounded(monkeypatch):
    monkeypatch.setattr("streamgp.streams.drift._MOST_ERRORS", 20)
    watch = DriftWatch("page_hinkley", "reset", is_label=False)
    for _ in range(50):
        watch.inspect([0.0])
    assert len(watch.errors) <= 20


def test_detectors_of_labels_refuse_numbers():
    with pytest.raises(OptionError, match=r"ddm looks at labels only, but the targets are numbers\. Use one of adwin"):
        DriftWatch("ddm", "rewarm", is_label=False)
    with pytest.raises(OptionError, match="drift_detector must be one of 'adwin'"):
        DriftWatch("nose", "rewarm", is_label=True)
