"""The scikit-learn estimators in files: their parameters and all that they have learned."""

import os
from collections.abc import Callable
from typing import Any

from streamgp.errors import FileFormatError
from streamgp.storage import load, register
from streamgp.storage.registry import is_registered
from streamgp.streaming.classifier import StreamingGPClassifier
from streamgp.streaming.estimator import AbstractStreamingEstimator, EstimatorState
from streamgp.streaming.learner import StreamLearner
from streamgp.streaming.model import StreamModel
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.refitting import RefitReport
from streamgp.streaming.regressor import StreamingGPRegressor
from streamgp.streaming.rows import Rows
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.space_time import SpaceTimeLearner, SpaceTimePrediction, StreamTicket

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
    if not isinstance(value, AbstractStreamingEstimator):
        raise FileFormatError(
            f"{path} does not hold an estimator, but a {type(value).__name__}. Read it with streamgp.load."
        )
    return value


def _parts(estimator: AbstractStreamingEstimator[Any]) -> dict[str, Any]:
    """Parameters, and what fitting has set, which ends with an underscore."""
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


for _cls in (
    StreamLearner,
    OneVsRest,
    StreamModel,
    RefitReport,
    Rows,
    StreamSettings,
    EstimatorState,
    SpaceTimeLearner,
    SpaceTimePrediction,
    StreamTicket,
):
    if not is_registered(_cls):
        register(_cls)
_estimators: tuple[Any, ...] = (StreamingGPRegressor, StreamingGPClassifier)
for _estimator in _estimators:
    register(_estimator, name=f"estimators.{_estimator.__name__}", to_fields=_parts, from_fields=_rebuilder(_estimator))
