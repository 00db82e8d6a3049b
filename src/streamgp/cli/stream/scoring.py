"""Predictions of rows before they are learned, as lines of a file and as what metrics measure."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from streamgp.cli.stream.rows import Row
from streamgp.streaming import LearnInfo, StreamLearner
from streamgp.streaming.one_vs_rest import OneVsRest

__all__ = ["LEVELS", "Learner", "Scored", "learn", "num_inducing", "score"]

Learner = StreamLearner | OneVsRest

# The ends of the interval that should hold 90 % of the targets.
LEVELS = (0.05, 0.95)


class Scored(NamedTuple):
    """Predictions and how good they were.

    Attributes:
        entries: What is written of each row.
        measures: What metrics add up, by name; empty where there is nothing to predict from.
    """

    entries: list[dict[str, Any]]
    measures: dict[str, list[float]]


def score(learner: Learner, rows: Sequence[Row], num_rows: int) -> Scored:
    """Predict rows.

    Args:
        learner: What is known before them.
        rows: The rows.
        num_rows: Number of rows before them.
    """
    entries = [{"row": num_rows + index, "line": row.line} for index, row in enumerate(rows, 1)]
    if learner.num_dims is None:
        return Scored(
            [{**each, "prediction": None, "target": row.target} for each, row in zip(entries, rows, strict=True)], {}
        )
    scored = _score_classes(learner, rows) if isinstance(learner, OneVsRest) else _score_values(learner, rows)
    return Scored([{**first, **each} for first, each in zip(entries, scored.entries, strict=True)], scored.measures)


def learn(learner: Learner, rows: Sequence[Row]) -> tuple[Learner, LearnInfo]:
    """Learn rows."""
    X = _inputs(rows)
    if isinstance(learner, OneVsRest):
        return learner.learn(X, [str(row.target) for row in rows])
    return learner.learn(X, _targets(rows), _totals(rows))


def num_inducing(learner: Learner) -> int:
    """Number of inducing points."""
    one = learner.learner if isinstance(learner, OneVsRest) else learner
    return 0 if one is None or one.model is None else one.model.bank.num_inducing


def _score_values(learner: StreamLearner, rows: Sequence[Row]) -> Scored:
    y = _targets(rows)
    prediction = learner.predict(_inputs(rows), _totals(rows))
    mean, quantiles = prediction.mean, prediction.quantiles(LEVELS)
    lower, upper = quantiles.unbind(-1)
    columns: dict[str, list[Any]] = {
        "prediction": mean.tolist(),
        "std": prediction.variance.sqrt().tolist(),
        "quantiles": [dict(zip(map(str, LEVELS), each, strict=True)) for each in quantiles.tolist()],
        "target": y.tolist(),
        "nlpd": (-prediction.log_density(y)).tolist(),
    }
    entries = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    measures = {
        "squared_error": (y - mean).square().tolist(),
        "absolute_error": (y - mean).abs().tolist(),
        "negative_log_density": columns["nlpd"],
        "is_covered": ((lower <= y) & (y <= upper)).double().tolist(),
    }
    return Scored(entries, measures)


def _score_classes(learner: OneVsRest, rows: Sequence[Row]) -> Scored:
    labels = [str(label) for label in learner.classes]
    unseen = learner.unseen
    entries: list[dict[str, Any]] = []
    measures: dict[str, list[float]] = {"is_correct": [], "brier": [], "negative_log_density": []}
    for row, values in zip(rows, learner.predict(_inputs(rows)).tolist(), strict=True):
        probabilities = dict(zip(labels, values, strict=True))
        predicted = max(labels, key=probabilities.__getitem__)
        nlpd = -math.log(probabilities.get(str(row.target), unseen))
        distance = sum((p - (label == row.target)) ** 2 for label, p in probabilities.items())
        entries.append({"prediction": predicted, "probabilities": probabilities, "target": row.target, "nlpd": nlpd})
        measures["is_correct"].append(float(predicted == row.target))
        measures["brier"].append(distance + (row.target not in probabilities))
        measures["negative_log_density"].append(nlpd)
    return Scored(entries, measures)


def _inputs(rows: Sequence[Row]) -> Tensor:
    return torch.tensor([row.inputs for row in rows], dtype=torch.float64)


def _targets(rows: Sequence[Row]) -> Tensor:
    return torch.tensor([row.target for row in rows], dtype=torch.float64)


def _totals(rows: Sequence[Row]) -> Tensor | None:
    totals = [row.total for row in rows if row.total is not None]
    return torch.tensor(totals, dtype=torch.float64) if totals else None
