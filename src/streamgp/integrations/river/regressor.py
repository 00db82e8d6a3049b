"""Regression of a stream, as an estimator of river."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pandas as pd
from river import base

from streamgp.errors import ShapeError, ValueRangeError
from streamgp.integrations.river.estimator import AbstractRiverEstimator
from streamgp.integrations.river.features import read_block, read_row
from streamgp.likelihoods import AbstractLikelihood
from streamgp.processes import sent_by_value
from streamgp.sites import SiteRule
from streamgp.streaming import StreamLearner
from streamgp.streaming.prediction import StreamPrediction
from streamgp.streaming.scoring import ValueScore
from streamgp.streaming.space_time import SpaceTimeLearner, SpaceTimePrediction, uses_space_time
from streamgp.streams.reading import read_numbers

__all__ = ["StreamingGPRegressor"]


@sent_by_value
@final
@dataclass(eq=False, repr=False)
class StreamingGPRegressor(AbstractRiverEstimator[StreamLearner | SpaceTimeLearner], base.MiniBatchRegressor):
    """Gaussian-process regression that learns from a stream in constant time and memory.

    ```python
    from river import datasets, evaluate, metrics

    from streamgp.integrations.river import StreamingGPRegressor

    model = StreamingGPRegressor(num_inducing=10, warmup=20)
    evaluate.progressive_val_score(datasets.TrumpApproval().take(40), model, metrics.MAE())
    ```

    Args:
        likelihood: `"gaussian"`, `"student_t"`, `"poisson"`, `"negative_binomial"`, or an object of
            `streamgp.likelihoods`.
        kernel: GPyTorch kernel for standardized inputs; a scaled Matérn-5/2 with a lengthscale for each by default.
        num_inducing: Number of inducing points; `"auto"` for 100, and more as the stream goes on, one for every 20
            rows, where it needs them.
        max_inducing: For `"auto"`: the most points, which bound time and memory.
        warmup: Rows after which the features and their units are frozen.
        refit: When hyperparameters are learned after that: `"auto"`, `"doubling"`, `"never"`, or every so many rows.
        buffer_size: Latest rows that a refit sees one by one.
        half_life: `"auto"` mixes several half-lives by how well they predict; a number of rows, or None to forget
            nothing.
        sites: How observations that are not Gaussian become Gaussian ones: a `streamgp.sites.SiteRule` with its
            tolerance and most iterations; None for the usual one.
        drift_detector: A detector of `river.drift`, copied; None for none. It is shown the error of each row before it
            is learned: in predictive standard deviations for real targets, 0 or 1 for labels.
        on_drift: What to do when errors have grown: `"rewarm"` begins again with a warm-up, `"reset"` keeps units and
            hyperparameters and forgets the rows.
        seed: Seed of the choices of training.
    """

    likelihood: str | AbstractLikelihood = "gaussian"
    sites: SiteRule | None = field(default=None, kw_only=True)

    def _start(self) -> tuple[StreamLearner | SpaceTimeLearner, ValueScore]:
        settings = self._settings(self.likelihood, self.sites)
        return SpaceTimeLearner(settings) if uses_space_time(settings) else StreamLearner(settings), ValueScore()

    def learn_one(self, x: dict[Hashable, Any], y: float, w: float = 1.0) -> None:
        """Learn one row, whose noise has the variance that is usual, over its weight `w`."""
        if not 0.0 < w < math.inf:
            raise ValueRangeError(f"w must be a positive number, but is {w!r}. Leave out rows that are not to count.")
        target = read_numbers([y], "y")
        if target.shape != (1,):
            raise ShapeError(f"y must be one number, but is {y!r}. For several, take StreamingGPMultiTargetRegressor.")
        self._learn(list(x), read_row(x), target, None if w == 1.0 else np.array([float(w)]))

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn rows in their order; a block of them takes much less time than one after the other."""
        values = read_block(X)
        self._learn(list(X.columns), values, read_numbers(y, "y"))

    def predict_one(self, x: dict[Hashable, Any]) -> float:
        """Mean of the target; zero before the first row was learned."""
        return float(self._predict(list(x), read_row(x))[0])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Means of the targets."""
        values = read_block(X)
        return pd.Series(self._predict(list(X.columns), values), index=X.index)

    def forecast_one(self, x: dict[Hashable, Any]) -> StreamPrediction | SpaceTimePrediction | None:
        """The whole distribution of the target: mean, variance, quantiles, log density; None before the first row."""
        forecast: StreamPrediction | SpaceTimePrediction | None = self._stream.predict(list(x), read_row(x))
        return forecast

    def _predict(self, names: Sequence[Hashable], values: np.ndarray) -> np.ndarray:
        forecast = self._stream.predict(names, values)
        return np.zeros(len(values)) if forecast is None else forecast.mean.numpy()
