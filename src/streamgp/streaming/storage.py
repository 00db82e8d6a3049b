"""What is known of a stream in files: a restored learner goes on as if never saved."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import torch

from streamgp.errors import FileFormatError
from streamgp.sites import SiteRule
from streamgp.storage import register
from streamgp.storage.registry import check_finite_fields
from streamgp.streaming.bank import Bank
from streamgp.streaming.baselines import ClassBaseline, ValueBaseline
from streamgp.streaming.bends import Bends
from streamgp.streaming.calibration import Calibration
from streamgp.streaming.experts import Expert, Experts
from streamgp.streaming.hyperparameters import FittedHyperparameters
from streamgp.streaming.learner import Halfway, StreamLearner
from streamgp.streaming.metrics import MetricsPoint, StreamMetrics
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.model import StreamModel
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.outliers import Outliers
from streamgp.streaming.points import Usage
from streamgp.streaming.reach import Reach
from streamgp.streaming.refitting import RefitReport
from streamgp.streaming.rows import Rows
from streamgp.streaming.scoring import ClassScore, ValueScore
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.sharpness import Sharpness
from streamgp.streaming.units import Units

__all__ = ["STORED"]

STORED = (
    Bank,
    Bends,
    Calibration,
    ClassBaseline,
    ClassScore,
    Expert,
    Experts,
    Halfway,
    FittedHyperparameters,
    MetricsPoint,
    Mixture,
    OneVsRest,
    Outliers,
    Reach,
    RefitReport,
    Rows,
    Sharpness,
    StreamLearner,
    StreamMetrics,
    StreamModel,
    StreamSettings,
    Units,
    Usage,
    ValueBaseline,
    ValueScore,
)


# Whose numbers are finite in every state that can be reached.
_FINITE = (Bank, Bends, Outliers, Rows, Units, Usage)


def _check_calibration(calibration: Calibration) -> None:
    if {len(getattr(calibration, each.name)) for each in fields(calibration)} != {len(Calibration().counts)}:
        raise FileFormatError("The bins of a calibration are not as many as there should be.")


def _check_learner(learner: StreamLearner) -> None:
    """Refuse what cannot predict and judge a row: its parts do not fit together, or make no sense."""
    model = learner.model
    if model is None:
        return
    with np.errstate(all="ignore"), torch.no_grad():
        X = np.ascontiguousarray(model.inducing_points[:1].numpy())
        counts = np.ones(1) if model.likelihood.row_data is not None else None
        prediction = model.predict(X, counts)
        if learner.is_multiclass:
            targets = np.eye(len(model.bank.constant))[:, :1]
        else:
            mean = np.reshape(np.asarray(prediction.mean), (-1, 1))
            targets = mean if model.likelihood.outcome_kind == "real" else mean.round()
        row = Rows(X, targets, counts)
        judged, scaled = model.judge(prediction, row), model.units.inputs(model.reach.limit(X))
        mixture, plausible = judged.mixture, judged.plausible
        expected = model.bank.see(scaled)
        model.learned(model.units.rows(row), expected, learner.settings, mixture=mixture, plausible=plausible)
        banks = [model.bank, learner.anchor, None if learner.halfway is None else learner.halfway.bank]
        seen = [bank.see(scaled).variance for bank in banks if bank is not None]
    for rows in (learner.buffer, learner.past):
        if rows is not None and (rows.inputs.shape[1], len(rows.targets)) != (X.shape[1], len(targets)):
            raise FileFormatError("The rows that a stream keeps have other columns than its model.")
    for found in (targets, judged.log_densities, mixture.weights, *seen):
        if not np.isfinite(found).all():
            raise FileFormatError("The belief about a stream predicts what is not finite.")


_CHECKS: dict[type, Callable[[Any], None]] = {Calibration: _check_calibration, StreamLearner: _check_learner}
for _cls in STORED:
    register(_cls, check=_CHECKS.get(_cls, check_finite_fields if _cls in _FINITE else None))
register(SiteRule, name="streaming.SiteRule")
