import numpy as np
import pytest
from gpytorch.kernels import RBFKernel

import streamgp as sg
from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.streams.classifier import StreamingGPClassifier
from streamgp.streams.regressor import StreamingGPRegressor

X = np.random.default_rng(0).normal(size=(60, 2))
VALUES = X.sum(-1) + 0.1 * np.random.default_rng(1).normal(size=60)
ESTIMATORS = {
    "regressor": (lambda: StreamingGPRegressor(num_inducing=5, warmup=20, kernel=RBFKernel()), VALUES),
    "two classes": (lambda: StreamingGPClassifier(num_inducing=5, warmup=20), np.where(VALUES > 0, "a", "b")),
    "classes": (lambda: StreamingGPClassifier(num_inducing=5, warmup=20), np.digitize(VALUES, [-1, 1])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_goes_on_as_if_never_saved(tmp_path, name):
    make, y = ESTIMATORS[name]
    estimator = make().partial_fit(X[:40], y[:40], **({} if name == "regressor" else {"classes": np.unique(y)}))
    estimator.save(tmp_path / "a")
    loaded = sg.load(tmp_path / "a")
    assert type(loaded) is type(estimator)
    for each in (estimator, loaded):
        each.partial_fit(X[40:], y[40:])
    assert np.array_equal(loaded.predict(X), estimator.predict(X))
    assert loaded.num_seen_ == 60
    if name != "regressor":
        assert np.array_equal(loaded.predict_proba(X), estimator.predict_proba(X))


def test_an_estimator_that_was_not_fitted_comes_back(tmp_path):
    StreamingGPRegressor(num_inducing=7).save(tmp_path / "a")
    assert sg.load_estimator(tmp_path / "a").get_params()["num_inducing"] == 7


def test_what_is_not_an_estimator_is_refused(tmp_path):
    sg.SparseGP.from_prior(RBFKernel(), [[0.0]]).save(tmp_path / "a")
    with pytest.raises(FileFormatError, match="does not hold an estimator, but a SparseGP"):
        sg.load_estimator(tmp_path / "a")


def test_a_drift_detector_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match="parameters"):
        StreamingGPRegressor(drift_detector=object()).save(tmp_path / "a")


def test_a_drift_detector_by_name_goes_on(tmp_path):
    pytest.importorskip("river")
    model = StreamingGPRegressor(warmup=20, drift_detector="page_hinkley", half_life=None)
    for start in range(0, 60, 10):
        model.partial_fit(X[start : start + 10], VALUES[start : start + 10])
    model.save(tmp_path / "a")
    loaded = sg.load(tmp_path / "a")
    for each in (model, loaded):
        each.partial_fit(X[:40], VALUES[:40] + 30.0)
    assert loaded.num_drifts_ == model.num_drifts_ > 0
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_ticket_is_saved(tmp_path):
    model = StreamingGPRegressor().partial_fit(X[:40], VALUES[:40])
    ticket = model.expect(X[40:42])
    model.save(tmp_path / "a")
    sg.storage.save(ticket, tmp_path / "b")
    loaded, again = sg.load(tmp_path / "a"), sg.load(tmp_path / "b")
    for one, said in ((model, ticket), (loaded, again)):
        one.learn(said, VALUES[40:42])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
