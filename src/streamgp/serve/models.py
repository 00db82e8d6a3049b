"""Streams of all kinds behind one face: rows as they come in JSON, answers as they go out."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from streamgp.errors import OptionError, UnsupportedError, ValueRangeError
from streamgp.streams.classifier import StreamingGPClassifier
from streamgp.streams.estimator import AbstractStreamEstimator
from streamgp.streams.regressor import StreamingGPRegressor

__all__ = ["AbstractModel", "model_of"]

Rows = Sequence[Mapping[str, Any] | Sequence[Any]]


class AbstractModel(ABC):
    """A stream that is predicted and learned, changed in place."""

    @property
    @abstractmethod
    def num_learned(self) -> int:
        """Number of rows learned so far."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the inputs, or words for them; none before the first row."""

    @property
    @abstractmethod
    def has_names(self) -> bool:
        """Tell whether rows are objects with values by name."""

    @abstractmethod
    def predict(self, rows: Rows, level: float) -> dict[str, list[Any]]:
        """Predict rows: one list for each quantity."""

    @abstractmethod
    def expect(self, rows: Rows, level: float) -> tuple[Any, dict[str, list[Any]]]:
        """Predict the next rows, whose targets come later; returns a ticket as well."""

    @abstractmethod
    def learn_ticket(self, ticket: Any, targets: Sequence[Any]) -> None:
        """Learn the targets of rows that were expected; None for one that will never come."""

    @abstractmethod
    def learn(self, rows: Rows, targets: Sequence[Any]) -> None:
        """Learn the next rows, in order."""

    @abstractmethod
    def explain(self, rows: Rows) -> list[dict[str, Any]]:
        """Say why rows are predicted as they are."""

    @abstractmethod
    def report(self) -> Any:
        """Return what became of predictions: a report with `num_rows`, `metrics` and `plot`."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write all that is known to a file."""


class _AbstractEstimatorModel(AbstractModel):
    """An estimator with the interface of scikit-learn."""

    def __init__(self, estimator: AbstractStreamEstimator) -> None:
        self._estimator = estimator

    @property
    def num_learned(self) -> int:
        return self._estimator.num_seen_ if hasattr(self._estimator, "state_") else 0

    @property
    def has_names(self) -> bool:
        return hasattr(self._estimator, "feature_names_in_")

    @property
    def columns(self) -> tuple[str, ...]:
        names = getattr(self._estimator, "feature_names_in_", None)
        if names is not None:
            return tuple(map(str, names))
        return tuple(f"number {i + 1}" for i in range(getattr(self._estimator, "n_features_in_", 0)))

    def explain(self, rows: Rows) -> list[dict[str, Any]]:
        estimator = self._estimator
        if not isinstance(estimator, StreamingGPRegressor):
            raise UnsupportedError("Predictions of classes are not explained yet.")
        return [
            {
                "experts": [each._asdict() for each in one.experts],
                "nearest": [each._asdict() for each in one.nearest],
                "is_far_out": one.is_far_out,
            }
            for one in estimator.explain(self._table(rows))
        ]

    def report(self) -> Any:
        return self._estimator.score_report()

    def save(self, path: Path) -> None:
        self._estimator.save(path)

    def _table(self, rows: Rows) -> Any:
        """Rows as a table of pandas, if they have names, or as an array."""
        kinds = {isinstance(row, Mapping) for row in rows}
        if kinds == {True, False} or (False in kinds and len({len(row) for row in rows}) > 1):
            raise OptionError("Rows must all be objects with the same names, or all be lists of the same length.")
        if self.columns and kinds != {self.has_names}:
            kind = f"objects with {', '.join(self.columns)}" if self.has_names else f"lists of {len(self.columns)}"
            raise OptionError(f"Rows of this stream are {kind}, as those that it has learned.")
        if True in kinds:
            import pandas as pd

            names = self.columns or tuple(dict.fromkeys(name for row in rows for name in row))
            for row in rows:
                if set(row) != set(names):
                    raise OptionError(f"Rows must have the columns {', '.join(names)}, but one has {', '.join(row)}.")
            return pd.DataFrame(list(rows), columns=list(names))
        return np.array([[np.nan if cell is None else cell for cell in row] for row in rows])


@final
class _ValueModel(_AbstractEstimatorModel):
    """A regressor."""

    def __init__(self, estimator: StreamingGPRegressor) -> None:
        super().__init__(estimator)
        self._regressor = estimator

    def predict(self, rows: Rows, level: float) -> dict[str, list[Any]]:
        mean, deviation, ends = self._regressor.predict(self._table(rows), return_std=True, quantiles=_ends(level))
        return _values(mean, deviation, ends)

    def expect(self, rows: Rows, level: float) -> tuple[Any, dict[str, list[Any]]]:
        try:
            ticket = self._regressor.expect(self._table(rows))
        except UnsupportedError:  # of a likelihood that learns rows when their targets have come
            return list(rows), self.predict(rows, level)
        said: Any = ticket.prediction
        return ticket, _values(said.mean, said.deviation, said.quantiles(_ends(level)))

    def learn_ticket(self, ticket: Any, targets: Sequence[Any]) -> None:
        if isinstance(ticket, list):
            self.learn(ticket, targets)
        else:
            self._regressor.learn(ticket, _numbers(targets))

    def learn(self, rows: Rows, targets: Sequence[Any]) -> None:
        known = [i for i, target in enumerate(targets) if target is not None]
        if known:
            self._regressor.partial_fit(self._table([rows[i] for i in known]), _numbers([targets[i] for i in known]))


@final
class _ClassModel(_AbstractEstimatorModel):
    """A classifier, which learns rows when their labels have come."""

    def __init__(self, estimator: StreamingGPClassifier) -> None:
        super().__init__(estimator)
        self._classifier = estimator

    def predict(self, rows: Rows, level: float) -> dict[str, list[Any]]:
        probabilities = self._classifier.predict_proba(self._table(rows))
        labels = self._classifier.classes_.tolist()
        best = probabilities.argmax(-1).tolist()
        each = [dict(zip(map(str, labels), row, strict=True)) for row in probabilities.tolist()]
        return {"label": [labels[i] for i in best], "probabilities": each}

    def expect(self, rows: Rows, level: float) -> tuple[Any, dict[str, list[Any]]]:
        return list(rows), self.predict(rows, level)

    def learn_ticket(self, ticket: Any, targets: Sequence[Any]) -> None:
        self.learn(ticket, targets)

    def learn(self, rows: Rows, targets: Sequence[Any]) -> None:
        known = [i for i, target in enumerate(targets) if target is not None]
        if known:
            self._classifier.partial_fit(self._table([rows[i] for i in known]), [targets[i] for i in known])


def model_of(value: Any) -> AbstractModel | None:
    """Return the model that a file holds; None if it holds something else."""
    if isinstance(value, StreamingGPRegressor):
        return _ValueModel(value)
    return _ClassModel(value) if isinstance(value, StreamingGPClassifier) else None


def _ends(level: float) -> list[float]:
    return [0.5 - 0.5 * level, 0.5 + 0.5 * level]


def _values(mean: Any, deviation: Any, ends: Any) -> dict[str, list[Any]]:
    if not all(np.isfinite(one).all() for one in (mean, deviation, ends)):
        raise ValueRangeError("These rows are too far from all that was learned for numbers. Look for a slip in them.")
    return {
        "mean": mean.tolist(),
        "deviation": deviation.tolist(),
        "lower": ends[..., 0].tolist(),
        "upper": ends[..., 1].tolist(),
    }


def _numbers(targets: Sequence[Any]) -> np.ndarray:
    if any(isinstance(target, str) for target in targets):
        raise OptionError("Targets of this stream are numbers, or null for one that will never come.")
    return np.array([math.nan if target is None else target for target in targets], dtype=np.float64)
