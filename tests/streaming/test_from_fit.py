"""Estimators from fits: they predict as the fit does, and learn on."""

import numpy as np
import pytest
import torch

import streamgp as sg
from streamgp.streaming.from_fit import classifier_from_fit, regressor_from_fit
from streamgp.testing.tolerances import regression_condition, rounding
from streamgp.training.sharded_fit import fit_classes
from streamgp.training.sharding import MappedShards

SAME = rounding(torch.float64, condition=regression_condition(40, 0.1))


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-3.0, 3.0, size=(40, 2))


def test_a_regressor_predicts_as_the_fit_does(X):
    shards = MappedShards([(X, 100.0 + 5.0 * np.sin(X[:, 0]))], map)
    result = sg.fit(shards, num_inducing=5, max_iterations=2, standardize=True)
    estimator = regressor_from_fit(result, shards, likelihood="gaussian")
    expected = result.predict(torch.from_numpy(X)).mean.numpy()
    np.testing.assert_allclose(estimator.predict(X), expected, **SAME)
    assert estimator.partial_fit(X[:1], [100.0]).num_seen_ == 41
    assert estimator.state_.score.metrics.num_rows == 1


@pytest.mark.slow
def test_a_classifier_has_the_probabilities_of_each_question_normalized(X):
    labels = np.digitize(X[:, 0] + 0.7 * np.random.default_rng(1).standard_normal(40), [-1.0, 1.0])
    shards = MappedShards([(X, labels)], map)
    results = fit_classes(shards, (0, 1, 2), num_inducing=4, max_iterations=1)
    estimator = classifier_from_fit(results, shards, classes=(0, 1, 2))
    latent = [each.predict(torch.from_numpy(X)) for each in results]
    each = torch.stack(
        [r.likelihood.predictive_mean(f.mean, f.variance) for r, f in zip(results, latent, strict=True)], dim=-1
    )
    np.testing.assert_allclose(estimator.predict_proba(X), each / each.sum(-1, keepdim=True), **SAME)
    assert estimator.partial_fit(X[:1], labels[:1]).num_seen_ == 41
    assert dict(estimator.state_.score.baseline.counts)[labels[0]] == 1 + (labels == labels[0]).sum()
