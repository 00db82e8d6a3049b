import numpy as np
import pytest
from gpytorch.kernels import RBFKernel

import streamgp as sg
from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.streaming.classifier import StreamingGPClassifier
from streamgp.streaming.regressor import StreamingGPRegressor

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
