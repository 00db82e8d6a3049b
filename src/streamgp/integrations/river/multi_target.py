"""Regression of several targets of a stream, as an estimator of river."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from river import base

from streamgp.errors import ArgumentTypeError, ValueRangeError
from streamgp.integrations.river.estimator import TARGET, AbstractRiverEstimator
from streamgp.processes import sent_by_value
from streamgp.streams.locks import lock_of
from streamgp.streams.model import ValuePrediction

__all__ = ["StreamingGPMultiTargetRegressor"]


@sent_by_value
@final
@dataclass(eq=False, repr=False)
class StreamingGPMultiTargetRegressor(AbstractRiverEstimator, base.MultiTargetRegressor):
    """Gaussian-process regression of several real targets, each with a model of its own.

    The first row says which targets there are; in later rows those that are not known may be NaN or absent.

    ```python
    from streamgp.integrations.river import StreamingGPMultiTargetRegressor

    model = StreamingGPMultiTargetRegressor(num_inducing=5, warmup=10)
    for hour in range(20):
        model.learn_one({"hour": hour}, {"load": hour % 7, "price": 2.0 * (hour % 7)})
    model.predict_one({"hour": 20})  # {"load": ..., "price": ...}
    ```

    Args:
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

    def __post_init__(self) -> None:
        """Begin without targets, but with options that are checked."""
        self._targets: tuple[Hashable, ...] = ()
        self._begin([TARGET], "gaussian")

    def learn_one(self, x: dict[Hashable, Any], y: Any, **kwargs: Any) -> None:
        """Learn one row, `y` with a number for each target that is known."""
        if kwargs:
            raise ArgumentTypeError(f"learn_one takes a row and its targets, but got {sorted(kwargs)} as well.")
        with lock_of(self):
            targets = _read_targets(y, self._targets)
            before = self._stream, self._targets
            if not self._targets:
                self._targets = tuple(targets)
                self._begin([f"{TARGET} {name!r}" for name in targets], "gaussian")
            named = dict(zip(self._stream.target, targets.values(), strict=True))
            try:
                self._stream.learn({**x, **named})
            except BaseException:
                self._stream, self._targets = before
                raise

    def predict_one(self, x: dict[Hashable, Any]) -> dict[Hashable, float]:
        """Return the means of the targets; nothing before the first row was learned."""
        forecast = self.forecast_one(x)
        return {} if forecast is None else dict(zip(self._targets, forecast.mean[0].tolist(), strict=True))

    def forecast_one(self, x: dict[Hashable, Any]) -> ValuePrediction | None:
        """Return the whole distribution of the targets, in the order in which they first came; None at first."""
        if not self._is_started():
            return None
        forecast = self._stream.predict(x)
        assert isinstance(forecast, ValuePrediction)
        return forecast


def _read_targets(y: Any, names: tuple[Hashable, ...]) -> dict[Hashable, float | None]:
    """Return targets in the order in which they first came; None for those that are not known."""
    if not isinstance(y, Mapping):
        raise ArgumentTypeError(f"y must be a dictionary with a number for each target, but is {y!r}.")
    unknown = [name for name in y if names and name not in names]
    if not y or unknown:
        raise ValueRangeError(
            f"y must have the targets {list(names) or 'of at least one name'}, as the first row, but has {list(y)}."
        )
    found: dict[Hashable, float | None] = {}
    for name in names or tuple(y):
        value = y.get(name)
        if value is not None and (not isinstance(value, int | float | np.number) or np.isinf(value)):
            raise ValueRangeError(
                f"The target {name!r} must be a finite number, or NaN where it is not known, but is {value!r}."
            )
        found[name] = None if value is None or np.isnan(value) else float(value)
    return found
