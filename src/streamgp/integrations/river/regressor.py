"""Regression of a stream, as an estimator of river."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, final

import pandas as pd
from river import base

from streamgp.errors import DTypeError, ValueRangeError
from streamgp.integrations.river.estimator import TARGET, AbstractRiverEstimator, read_block
from streamgp.likelihoods import AbstractLikelihood
from streamgp.processes import sent_by_value
from streamgp.streams.model import ValuePrediction

__all__ = ["StreamingGPRegressor"]


@sent_by_value
@final
@dataclass(eq=False, repr=False)
class StreamingGPRegressor(AbstractRiverEstimator, base.MiniBatchRegressor):
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
        kernel: As for `streamgp.StreamingGPRegressor`, and so are the others.
        num_inducing: See there.
        max_inducing: See there.
        warmup: Rows during which a new feature becomes an input; see there.
        refit: See there.
        buffer_size: See there.
        half_life: See there.
        drift_detector: See there.
        on_drift: See there.
    """

    likelihood: str | AbstractLikelihood = "gaussian"

    def __post_init__(self) -> None:
        """Begin with a stream that has seen nothing."""
        self._begin(TARGET, self.likelihood)

    def learn_one(self, x: dict[Hashable, Any], y: float, w: float = 1.0) -> None:
        """Learn one row, whose noise has the variance that is usual, over its weight `w`."""
        if not 0.0 < w < math.inf:
            raise ValueRangeError(f"w must be a positive number, but is {w!r}. Leave out rows that are not to count.")
        self._stream.learn({**x, TARGET: _number(y)}, weights=None if w == 1.0 else [w])

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn rows in their order; a block of them takes much less time than one after the other."""
        rows = read_block(X, y)
        self._stream.learn([{**row, TARGET: _number(row[TARGET])} for row in rows])

    def predict_one(self, x: dict[Hashable, Any]) -> float:
        """Return the mean of the target; zero before the first row was learned."""
        forecast = self.forecast_one(x)
        return 0.0 if forecast is None else float(forecast.mean[0])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the means of the targets."""
        rows = read_block(X)
        return pd.Series(self._stream.predict(rows).mean if self._is_started() else 0.0, index=X.index)  # type: ignore[union-attr]

    def forecast_one(self, x: dict[Hashable, Any]) -> ValuePrediction | None:
        """Return the whole distribution of the target: mean, variance, quantiles, log density; None at first."""
        if not self._is_started():
            return None
        forecast = self._stream.predict(x)
        assert isinstance(forecast, ValuePrediction)
        return forecast


def _number(y: Any) -> float:
    try:
        target = float(y)
    except (TypeError, ValueError) as error:
        raise DTypeError(
            f"y must be one number, but is {y!r}. For several, take StreamingGPMultiTargetRegressor; labels are for "
            "StreamingGPClassifier."
        ) from error
    if not math.isfinite(target):
        raise ValueRangeError(f"y must be finite, but is {y!r}. Leave out rows without a target.")
    return target
