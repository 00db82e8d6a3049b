"""Streams in files: arrays and numbers, from which a learner goes on as if it had never been saved."""

from typing import Any

import numpy as np

from streamgp.errors import ShapeError
from streamgp.storage import register
from streamgp.streams.buffer import Buffer, Units
from streamgp.streams.classes import Sureness
from streamgp.streams.history import History, HistoryPoint, RefitRecord
from streamgp.streams.latent_forecasts import ClassForecast, LatentForecast
from streamgp.streams.learner import StreamLearner, Ticket
from streamgp.streams.observing import Observing
from streamgp.streams.options import StreamOptions
from streamgp.streams.predictive import Forecast
from streamgp.streams.prior import Expert, Prior
from streamgp.streams.refit import Fitted, Plan, Snapshot
from streamgp.streams.schedule import Schedule
from streamgp.streams.state import NUM_TAILS, Belief

__all__ = ["STORED"]

STORED = (
    Belief,
    ClassForecast,
    Expert,
    Fitted,
    Forecast,
    HistoryPoint,
    LatentForecast,
    Observing,
    Plan,
    Prior,
    RefitRecord,
    Schedule,
    Snapshot,
    StreamOptions,
    Sureness,
    Ticket,
    Units,
)


def _fields(learner: StreamLearner) -> dict[str, Any]:
    learner.finish()
    fields = {name: value for name, value in vars(learner).items() if name not in ("_job", "dynamics")}
    return {**fields, "buffer": learner.buffer.copy()}


def _history_fields(history: History) -> dict[str, Any]:
    """Return what files hold: not how long refits took, so that equal streams have equal files."""
    refits = tuple(each._replace(seconds=0.0) for each in history.refits)
    return {**vars(history), "refits": refits}


def _rebuild(
    options: StreamOptions,
    plan: Plan,
    sureness: Sureness,
    buffer: Buffer,
    fitted: Fitted | None,
    belief: Belief | None,
    anchor: Snapshot | None,
    halfway: Snapshot | None,
    num_halfway: int,
    lower: np.ndarray,
    upper: np.ndarray,
    num_outside: int,
    clock: int,
    num_seen: int,
    num_since_start: int,
    schedule: Schedule,
    moves: bool,
    patience: float,
    most_open: float,
    history: History,
) -> StreamLearner:
    given = locals()
    learner = StreamLearner(buffer.inputs.shape[1], options, num_classes=plan.num_classes)
    for name, value in given.items():
        setattr(learner, name, value)
    _check(learner)
    learner.dynamics = None if fitted is None else fitted.dynamics()
    return learner


def _check(learner: StreamLearner) -> None:
    """Check that all arrays are of the same columns, points and filters."""
    d, buffer = learner.num_dims, learner.buffer
    shapes: list[tuple[np.ndarray, tuple[int, ...]]] = [(learner.lower, (d,)), (learner.upper, (d,))]
    shapes.append((learner.sureness.counts, (learner.num_classes,)))
    for name in ("inputs", "targets", "counts", "noises", "times", "scaled_inputs", "scaled_targets"):
        column = getattr(buffer, name)
        shapes.append((column, (len(buffer.targets), d) if column.ndim == 2 else (len(buffer.targets),)))
    states: list[tuple[Fitted | None, Belief | None]] = [(learner.fitted, learner.belief)]
    states += [(each.fitted, each.belief) for each in (learner.anchor, learner.halfway) if each is not None]
    for fitted, belief in states:
        if fitted is None or belief is None:
            continue
        for name in ("bend_center", "bend_scale", "input_mean", "input_scale"):
            shapes.append((getattr(fitted.units, name), (d,)))
        if isinstance(fitted.prior.kernel, int):
            shapes.append((fitted.prior.lengthscales, (d,)))
        e, t = len(fitted.experts), 1 if fitted.observing is not None else NUM_TAILS
        f, p = e * fitted.num_questions, len(belief.points)
        k = 1 + d + p
        expected: dict[str, tuple[int, ...]] = {
            "points": (p, d),
            "whitening": (p, p),
            "num_points": (1,),
            "clock": (1,),
            "mean": (f, k),
            "covariance": (f, k, k),
            "moments": (4, d),
            "counts": (2,),
            "use": (p,),
        }
        expected |= dict.fromkeys(("shape", "rate", "near", "far"), (e, t))
        shapes += [(getattr(belief, name), shape) for name, shape in expected.items()]
    if not all(np.shape(array) == shape for array, shape in shapes) or buffer.num_rows > len(buffer.targets):
        raise ShapeError("The arrays of this stream do not belong together: the file is damaged. Use an earlier one.")


for _cls in STORED:
    register(_cls)
register(Buffer)
register(History, to_fields=_history_fields)
register(StreamLearner, to_fields=_fields, from_fields=_rebuild)
