"""Streams in files: arrays and numbers, from which a learner goes on as if it had never been saved."""

from typing import Any

import numpy as np

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
from streamgp.streams.state import Belief

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
    learner.dynamics = None if fitted is None else fitted.dynamics()
    return learner


for _cls in STORED:
    register(_cls)
register(Buffer)
register(History, to_fields=lambda history: dict(vars(history)))
register(StreamLearner, to_fields=_fields, from_fields=_rebuild)
