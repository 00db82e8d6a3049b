"""Streams, their estimators and tickets in files: parameters and all that was learned."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from streamgp.errors import FileFormatError
from streamgp.storage import load, register
from streamgp.storage.registry import is_registered
from streamgp.streams.classifier import StreamingGPClassifier
from streamgp.streams.drift import DriftWatch
from streamgp.streams.estimator import AbstractStreamEstimator
from streamgp.streams.model import ClassPrediction, StreamModel, StreamTicket, ValuePrediction
from streamgp.streams.regressor import StreamingGPRegressor
from streamgp.streams.score import Calibration, ClassScore, Recent, RunningTotals, ValueScore
from streamgp.streams.storage import STORED
from streamgp.streams.stream import RowTicket, Stream

__all__ = ["load_estimator"]


def load_estimator(path: str | os.PathLike[str]) -> Any:
    """Read an estimator: one that was saved, or what `streamgp fit` wrote on the command line.

    It has scikit-learn's interface, and goes on learning with `partial_fit`.

    ```python
    sg.StreamingGPRegressor().partial_fit([[0.0], [1.0]], [0.2, 0.9]).save("sensor.sgp")
    sg.load_estimator("sensor.sgp").predict([[0.5]])
    ```

    Args:
        path: The file.

    Raises:
        FileFormatError: If there is no such file, it is damaged, or holds something else.
    """
    value = load(path)
    if not isinstance(value, AbstractStreamEstimator):
        raise FileFormatError(
            f"{path} does not hold an estimator, but a {type(value).__name__}. Read it with streamgp.load."
        )
    return value


def _parts(estimator: AbstractStreamEstimator) -> dict[str, Any]:
    """Return parameters, and what fitting has set, which ends with an underscore."""
    learned = {name: value for name, value in vars(estimator).items() if name.endswith("_") and name[0] != "_"}
    return {"parameters": estimator.get_params(deep=False), "learned": learned}


def _rebuilder(cls: type) -> Callable[..., Any]:
    def rebuild(parameters: dict[str, Any], learned: dict[str, Any]) -> Any:
        estimator = cls(**parameters)
        for name, value in learned.items():
            if not name.endswith("_") or name.startswith("_"):
                raise ValueError(f"{name!r} is not an attribute that fitting sets")
            setattr(estimator, name, value)
        return estimator

    return rebuild


_STREAM_PARAMETERS = (
    *("target", "likelihood", "total_count", "features", "exclude", "kinds", "first_rows", "kernel", "num_inducing"),
    *("max_inducing", "warmup", "refit", "buffer_size", "half_life", "drift_detector", "on_drift", "link"),
)


def _stream_parts(stream: Stream) -> dict[str, Any]:
    state = {name: value for name, value in vars(stream).items() if name not in _STREAM_PARAMETERS}
    parameters = {name: getattr(stream, name) for name in _STREAM_PARAMETERS}
    # Names of columns and labels need not be texts, which JSON would make of them.
    state["_first"] = tuple(tuple(record.items()) for record in stream._first)
    kinds = stream.kinds if isinstance(stream.kinds, str) else tuple(stream.kinds.items())
    return {"parameters": {**parameters, "kinds": kinds}, "state": state}


def _rebuild_stream(parameters: dict[str, Any], state: dict[str, Any]) -> Stream:
    kinds = parameters["kinds"]
    stream = Stream(**{**parameters, "kinds": kinds if isinstance(kinds, str) else dict(kinds)})
    if state.keys() != {name for name in vars(stream) if name not in _STREAM_PARAMETERS}:
        raise ValueError("the state of the stream is not complete")
    for name, value in state.items():
        setattr(stream, name, value)
    stream._first = [dict(record) for record in state["_first"]]
    stream._first_weights = list(state["_first_weights"])
    return stream


def _recent_parts(recent: Recent) -> dict[str, Any]:
    return {"table": recent.settled(), "drifts": recent.drifts}


def _check_calibration(calibration: Calibration) -> None:
    if not all(np.isfinite(each).all() for each in vars(calibration).values()):
        raise FileFormatError("The file's calibration holds what is not finite. It is damaged.")


for _cls in (
    *STORED,
    StreamModel,
    StreamTicket,
    RowTicket,
    ValuePrediction,
    ClassPrediction,
    RunningTotals,
    ClassScore,
):
    if not is_registered(_cls):
        register(_cls, name=f"stream.{_cls.__name__}")
register(ValueScore, name="stream.ValueScore")
register(Calibration, name="stream.Calibration", check=_check_calibration)
register(Recent, name="stream.Recent", to_fields=_recent_parts)
register(Stream, name="stream.Stream", to_fields=_stream_parts, from_fields=_rebuild_stream)
_estimators: tuple[Any, ...] = (StreamingGPRegressor, StreamingGPClassifier)
for _estimator in _estimators:
    register(_estimator, name=f"estimators.{_estimator.__name__}", to_fields=_parts, from_fields=_rebuilder(_estimator))
assert is_registered(DriftWatch)
