"""Regression of several targets of a stream, as an estimator of river."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from river import base

from streamgp.errors import ArgumentTypeError, ValueRangeError
from streamgp.integrations.river.estimator import AbstractRiverEstimator
from streamgp.integrations.river.features import read_row
from streamgp.processes import sent_by_value
from streamgp.streaming import StreamLearner
from streamgp.streaming.prediction import StreamPrediction
from streamgp.streaming.scoring import ValueScore
from streamgp.streaming.space_time import SpaceTimeLearner, SpaceTimePrediction, uses_space_time
from streamgp.streams.locks import lock_of

__all__ = ["StreamingGPMultiTargetRegressor"]


@sent_by_value
@final
@dataclass(eq=False, repr=False)
class StreamingGPMultiTargetRegressor(
    AbstractRiverEstimator[StreamLearner | SpaceTimeLearner], base.MultiTargetRegressor
):
    """Gaussian-process regression of several real targets, which share kernel and inducing points.

    The first row says which targets there are; all rows must have them.

    ```python
    from streamgp.integrations.river import StreamingGPMultiTargetRegressor

    model = StreamingGPMultiTargetRegressor(num_inducing=5, warmup=10)
    for hour in range(20):
        model.learn_one({"hour": hour}, {"load": hour % 7, "price": 2.0 * (hour % 7)})
    model.predict_one({"hour": 20})  # {"load": ..., "price": ...}
    ```

    Args:
        kernel: GPyTorch kernel for standardized inputs; a scaled Matérn-5/2 with a lengthscale for each by default.
        num_inducing: Number of inducing points; `"auto"` for 100, and more as the stream goes on, one for every 20
            rows, where it needs them.
        max_inducing: For `"auto"`: the most points, which bound time and memory.
        warmup: Rows after which the features and their units are frozen.
        refit: When hyperparameters are learned after that: `"auto"`, `"doubling"`, `"never"`, or every so many rows.
        buffer_size: Latest rows that a refit sees one by one.
        half_life: `"auto"` mixes several half-lives by how well they predict; a number of rows, or None to forget
            nothing.
        drift_detector: A detector of `river.drift`, copied; None for none. It is shown the mean error of each row
            before it is learned, in predictive standard deviations.
        on_drift: What to do when errors have grown: `"rewarm"` begins again with a warm-up, `"reset"` keeps units and
            hyperparameters and forgets the rows.
        seed: Seed of the choices of training.
    """

    def __post_init__(self) -> None:
        """Begin without targets."""
        super().__post_init__()
        self._targets: tuple[Hashable, ...] = ()

    def _start(self) -> tuple[StreamLearner | SpaceTimeLearner, ValueScore]:
        settings = self._settings("gaussian")
        return SpaceTimeLearner(settings) if uses_space_time(settings) else StreamLearner(settings), ValueScore()

    def learn_one(self, x: dict[Hashable, Any], y: Any, **kwargs: Any) -> None:
        """Learn one row, `y` with a number for each target."""
        if kwargs:
            raise ArgumentTypeError(f"learn_one takes a row and its targets, but got {sorted(kwargs)} as well.")
        with lock_of(self):
            targets = _read_targets(y, self._targets)
            self._learn(list(x), read_row(x), np.array([list(targets.values())]))
            self._targets = tuple(targets)

    def predict_one(self, x: dict[Hashable, Any]) -> dict[Hashable, float]:
        """Means of the targets; nothing before the first row was learned."""
        forecast = self.forecast_one(x)
        return {} if forecast is None else dict(zip(self._targets, forecast.mean[0].tolist(), strict=True))

    def forecast_one(self, x: dict[Hashable, Any]) -> StreamPrediction | SpaceTimePrediction | None:
        """The whole distribution of the targets, in the order in which they first came; None before the first row."""
        forecast: StreamPrediction | SpaceTimePrediction | None = self._stream.predict(list(x), read_row(x))
        return forecast


def _read_targets(y: Any, names: tuple[Hashable, ...]) -> dict[Hashable, float]:
    """Targets in the order in which they first came, all of them numbers."""
    if not isinstance(y, Mapping):
        raise ArgumentTypeError(f"y must be a dictionary with a number for each target, but is {y!r}.")
    names = names or tuple(y)
    if not y or set(names) != set(y):
        raise ValueRangeError(
            f"y must have the targets {list(names) or 'of at least one name'}, as the first row, but has {list(y)}. "
            "Impute what is missing."
        )
    for name in names:
        if not isinstance(y[name], int | float | np.number) or not np.isfinite(y[name]):
            raise ValueRangeError(
                f"The target {name!r} must be a finite number, but is {y[name]!r}. Impute what is missing, or leave "
                "the row out."
            )
    return {name: float(y[name]) for name in names}
