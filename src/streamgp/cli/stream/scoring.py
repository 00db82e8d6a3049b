"""Predictions of rows before they are learned, as lines of a file and as what metrics measure."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.cli.stream.rows import Row
from streamgp.streaming import LearnInfo, StreamLearner
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.scoring import INTERVAL, ClassScore, ValueScore, label_loss

__all__ = ["Learner", "Recent", "Score", "Scored", "learn", "num_inducing", "score"]

Learner = StreamLearner | OneVsRest
Score = ValueScore | ClassScore


class Recent(NamedTuple):
    """A prediction as it is drawn.

    Attributes:
        row: Number of its row.
        target: What came; None if it is missing. For classes, the probability of what came.
        mean: What was predicted.
        lower: The lower end of its band.
        upper: The upper one.
    """

    row: int
    target: float | None
    mean: float | None
    lower: float | None
    upper: float | None


class Scored(NamedTuple):
    """Predictions and how good they were.

    Attributes:
        entries: What is written of each row.
        score: The metrics after them.
        errors: How wrong they were, for a detector of changes: of the rows that have a target.
        recent: What is drawn of them.
    """

    entries: list[dict[str, Any]]
    score: Score
    errors: list[float]
    recent: list[Recent]


def score(learner: Learner, rows: Sequence[Row], X: Float[Tensor, "n d"], before: Score, *, num_rows: int) -> Scored:
    """Predict rows.

    Args:
        learner: What is known before them.
        rows: The rows.
        X: Their inputs.
        before: The metrics before them.
        num_rows: Number of rows before them.
    """
    numbers = [{"row": num_rows + index, "line": row.line} for index, row in enumerate(rows, 1)]
    if learner.num_dims is None:
        nothing = [{**each, "prediction": None, "target": row.target} for each, row in zip(numbers, rows, strict=True)]
        return Scored(nothing, _seen(before, rows), [], [])
    if isinstance(learner, OneVsRest):
        assert isinstance(before, ClassScore)
        return _score_classes(learner, rows, X, before, numbers=numbers)
    assert isinstance(before, ValueScore)
    return _score_values(learner, rows, X, before, numbers=numbers)


def learn(learner: Learner, rows: Sequence[Row], X: Float[Tensor, "n d"]) -> tuple[Learner, LearnInfo]:
    """Learn those of the rows that have a target."""
    index = _known(rows)
    if not index:
        return learner, LearnInfo()
    rows, X = [rows[i] for i in index], X[index]
    if isinstance(learner, OneVsRest):
        return learner.learn(X, _labels(rows))
    return learner.learn(X, _targets(rows), _total_count(rows))


def num_inducing(learner: Learner) -> int:
    """Number of inducing points."""
    one = learner.learner if isinstance(learner, OneVsRest) else learner
    return 0 if one is None or one.model is None else one.model.bank.num_inducing


def _seen(before: Score, rows: Sequence[Row]) -> Score:
    known = [rows[i] for i in _known(rows)]
    if isinstance(before, ClassScore):
        return before.seen(_labels(known))
    return before.seen(_targets(known).unsqueeze(-1).numpy())


def _score_values(
    learner: StreamLearner,
    rows: Sequence[Row],
    X: Float[Tensor, "n d"],
    before: ValueScore,
    *,
    numbers: Sequence[dict[str, Any]],
) -> Scored:
    index = _known(rows)
    prediction = learner.predict(X, _total_count(rows))
    mean, deviation, quantiles = prediction.mean, prediction.variance.sqrt(), prediction.quantiles(INTERVAL)
    known = [rows[i] for i in index]
    y = _targets(known)
    if 0 < len(index) < len(rows):
        prediction = learner.predict(X[index], _total_count(known))
    nlpd = -prediction.log_density(y) if index else y
    densities = dict(zip(index, nlpd.tolist(), strict=True))
    entries = []
    for i, row in enumerate(rows):
        entry = {
            **numbers[i],
            "prediction": float(mean[i]),
            "std": float(deviation[i]),
            "quantiles": dict(zip(map(str, INTERVAL), quantiles[i].tolist(), strict=True)),
            "target": row.target,
        }
        entries.append({**entry, "nlpd": densities[i]} if i in densities else entry)
    after = before.predicted(prediction, y.unsqueeze(-1).numpy()) if index else before
    errors = ((y - mean[index]).abs() / deviation[index]).tolist()
    recent = [
        Recent(each["row"], row.target, float(mean[i]), *quantiles[i].tolist())  # type: ignore[arg-type]
        for i, (each, row) in enumerate(zip(numbers, rows, strict=True))
    ]
    return Scored(entries, after, errors, recent)


def _score_classes(
    learner: OneVsRest,
    rows: Sequence[Row],
    X: Float[Tensor, "n d"],
    before: ClassScore,
    *,
    numbers: Sequence[dict[str, Any]],
) -> Scored:
    labels, index = [str(label) for label in learner.classes], _known(rows)
    probabilities = learner.predict(X)
    entries: list[dict[str, Any]] = []
    errors: list[float] = []
    recent: list[Recent] = []
    nlpd: list[float] = []
    for number, row, values in zip(numbers, rows, probabilities.tolist(), strict=True):
        each: dict[Hashable, float] = dict(zip(labels, values, strict=True))
        predicted = max(labels, key=each.__getitem__)
        entry = {**number, "prediction": predicted, "probabilities": each, "target": row.target}
        if row.target is not None:
            nlpd.append(label_loss(str(row.target), each, learner.num_seen))
            errors.append(float(predicted != row.target))
            entry["nlpd"] = nlpd[-1]
            recent.append(Recent(number["row"], each.get(str(row.target), 0.0), None, None, None))
        entries.append(entry)
    after = before
    if index:
        after = before.add(
            _labels([rows[i] for i in index]),
            classes=labels,
            probabilities=probabilities[index].numpy(),
            negative_log_density=nlpd,
        )
    return Scored(entries, after, errors, recent)


def _known(rows: Sequence[Row]) -> list[int]:
    """Which rows have a target."""
    return [index for index, row in enumerate(rows) if row.target is not None]


def _labels(rows: Sequence[Row]) -> list[str]:
    return [str(row.target) for row in rows]


def _targets(rows: Sequence[Row]) -> Float[Tensor, " n"]:
    return torch.tensor([row.target for row in rows], dtype=torch.float64)


def _total_count(rows: Sequence[Row]) -> Float[Tensor, " n"] | None:
    values = [row.total_count for row in rows if row.total_count is not None]
    return torch.tensor(values, dtype=torch.float64) if values else None
