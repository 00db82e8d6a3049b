"""Estimators of streams from fits over shards of rows: they predict, and go on learning."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamgp.streams.classifier import StreamingGPClassifier
from streamgp.streams.from_fit import learner_from_fit
from streamgp.streams.model import StreamModel
from streamgp.streams.regressor import StreamingGPRegressor
from streamgp.training import FitResult
from streamgp.training.sharding import AbstractShards

__all__ = ["classifier_from_fit", "regressor_from_fit"]


def regressor_from_fit(result: FitResult, shards: AbstractShards, *, likelihood: Any) -> StreamingGPRegressor:
    """Return a regressor that knows what a fit learned, and forgets nothing of it.

    Args:
        result: Of the fit.
        shards: What it was fitted to, whose range and number of rows are asked for.
        likelihood: As the user named it.
    """
    estimator = StreamingGPRegressor(likelihood, num_inducing=result.gp.num_inducing, half_life=None)
    estimator.state_ = _model(estimator, (result,), shards)
    estimator.state_.fits = (result,)
    estimator.n_features_in_ = result.gp.inducing_points.shape[-1]
    return estimator


def classifier_from_fit(
    results: Sequence[FitResult], shards: AbstractShards, *, classes: Sequence[Any]
) -> StreamingGPClassifier:
    """Return a classifier that knows what a fit of classes learned.

    Args:
        results: What `streamgp.training.sharded_fit.fit_classes` returned.
        shards: What it was fitted to.
        classes: The labels.
    """
    estimator = StreamingGPClassifier(num_inducing=results[0].gp.num_inducing, half_life=None)
    estimator.state_ = _model(estimator, results, shards, classes)
    estimator.n_features_in_ = results[0].gp.inducing_points.shape[-1]
    return estimator


def _model(estimator: Any, results: Sequence[FitResult], shards: AbstractShards, classes: Sequence[Any] = ()) -> Any:
    parts = shards.ask(_find_range)
    lower, upper = np.min([part[0] for part in parts], axis=0), np.max([part[1] for part in parts], axis=0)
    num_rows, options = sum(part[2] for part in parts), estimator._options()
    model = StreamModel.begin(options, is_label=bool(classes))
    num_classes = max(len(classes), 2) if classes else 0
    learner = learner_from_fit(results, options, lower, upper, num_rows, num_classes=num_classes)
    model.learners, model.num_seen, model.classes = (learner,), num_rows, tuple(classes)
    return model


def _find_range(index: int, shard: Any, kept: Any) -> tuple[np.ndarray, np.ndarray, int]:
    X = np.asarray(shard[0], dtype=np.float64)
    return X.min(0), X.max(0), len(X)
