"""Streams of all kinds behind one face: rows as they come in JSON, answers as they go out."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from streamgp.errors import OptionError, ValueRangeError
from streamgp.streams.classifier import StreamingGPClassifier
from streamgp.streams.model import ClassPrediction, ValuePrediction
from streamgp.streams.regressor import StreamingGPRegressor
from streamgp.streams.stream import Stream

__all__ = ["Model", "Rows"]

Rows = Sequence[Mapping[str, Any] | Sequence[Any]]
_Served = Stream | StreamingGPRegressor | StreamingGPClassifier


@final
class Model:
    """A stream of rows, or an estimator with the interface of scikit-learn, changed in place.

    Refits run in the background from now on, so that no request waits for one.

    Attributes:
        served: What was saved.
    """

    def __init__(self, served: _Served) -> None:
        """Let refits run in the background."""
        self.served: _Served = served.set_refit("background")

    @staticmethod
    def is_known(value: Any) -> bool:
        """Tell whether something can be served as a stream."""
        return isinstance(value, Stream | StreamingGPRegressor | StreamingGPClassifier)

    @property
    def num_learned(self) -> int:
        """Number of rows learned so far."""
        return self.served.num_seen_

    @property
    def is_refitting(self) -> bool:
        """Tell whether a refit runs, for which a save would wait."""
        return self.served.is_refitting_

    @property
    def example(self) -> Any:
        """Return a row as it may look."""
        if isinstance(self.served, Stream):
            columns = self.served.columns_.columns if self.num_learned else ()
            return {str(column.name): None if column.kind != "number" else 0 for column in columns}
        names = self._names
        return dict.fromkeys(names, 0) if names else [0] * getattr(self.served, "n_features_in_", 0)

    def predict(self, rows: Rows, quantiles: Sequence[float]) -> list[dict[str, Any]]:
        """Predict rows, without waiting for their targets."""
        if isinstance(self.served, Stream):
            said = self.served.predict(self._table(rows))
            assert isinstance(said, ValuePrediction | ClassPrediction)
            return _records(said, quantiles)
        if isinstance(self.served, StreamingGPRegressor):
            found = self.served.predict(self._table(rows), return_std=True, quantiles=list(quantiles))
            columns = [_finite(each).tolist() for each in found]
            return [
                {"mean": mean, "std": std, "quantiles": dict(zip(map(str, quantiles), ends, strict=True))}
                for mean, std, ends in zip(*columns, strict=True)
            ]
        labels = self.served.classes_.tolist()
        probabilities = _finite(self.served.predict_proba(self._table(rows)))
        return [
            {"label": labels[int(each.argmax())], "probabilities": dict(zip(labels, each.tolist(), strict=True))}
            for each in probabilities
        ]

    def expect(self, rows: Rows, quantiles: Sequence[float]) -> tuple[Any, list[dict[str, Any]]]:
        """Predict the next rows, whose targets come later; returns a ticket as well."""
        ticket = self.served.expect(self._table(rows))
        return ticket, _records(ticket.prediction, quantiles)

    def learn_ticket(self, ticket: Any, targets: Sequence[Any]) -> None:
        """Learn the targets of rows that were expected; None for one that will never come."""
        if isinstance(self.served, Stream):
            self.served.learn(ticket, targets)
        else:
            self.served.learn(ticket, self._targets(targets))

    def learn(self, rows: Rows, targets: Sequence[Any] | None) -> None:
        """Learn the next rows, in order.

        Args:
            rows: The rows.
            targets: Their targets; None where rows of a stream have them among their values.
        """
        served: Any = self.served
        if isinstance(served, Stream):
            name = served.target
            if targets is not None and isinstance(name, list | tuple):
                raise OptionError("Send several targets among the values of the rows.")
            given = self._table(rows)
            if targets is not None:
                given = [{**row, name: target} for row, target in zip(given, targets, strict=True)]
            served.learn(given)
            return
        if targets is None:
            raise OptionError("Send targets, one for each row.")
        known = [i for i, target in enumerate(targets) if target is not None]
        if known:
            table = self._table([rows[i] for i in known])
            served.partial_fit(table, self._targets([targets[i] for i in known]))

    def explain(self, rows: Rows) -> list[dict[str, Any]]:
        """Say why rows are predicted as they are."""
        return [
            {
                "experts": [each._asdict() for each in one.experts],
                "nearest": [each._asdict() for each in one.nearest],
                "is_far_out": one.is_far_out,
            }
            for one in self.served.explain(self._table(rows))
        ]

    def report(self) -> Any:
        """Return what became of predictions: a report with `num_rows`, `metrics` and `plot`."""
        return self.served.score_report()

    def save(self, path: Path) -> None:
        """Write all that is known to a file."""
        self.served.save(path)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(map(str, getattr(self.served, "feature_names_in_", ())))

    def _table(self, rows: Rows) -> Any:
        """Return rows as the model takes them: mappings, a table with names, or an array."""
        kinds = {isinstance(row, Mapping) for row in rows}
        if isinstance(self.served, Stream):
            if kinds != {True}:
                raise OptionError("Rows of this stream are objects with values by name.")
            return list(rows)
        names, width = self._names, getattr(self.served, "n_features_in_", len(rows[0]))
        if names:
            if kinds != {True} or any(set(row) != set(names) for row in rows):
                raise OptionError(f"Rows of this stream are objects with {', '.join(names)}, and nothing else.")
            import pandas as pd

            return pd.DataFrame(list(rows), columns=list(names))
        if kinds != {False} or any(len(row) != width for row in rows):
            raise OptionError(f"Rows of this stream are lists of {width} numbers.")
        return np.array([[np.nan if cell is None else cell for cell in row] for row in rows])

    def _targets(self, targets: Sequence[Any]) -> Any:
        if isinstance(self.served, StreamingGPClassifier):
            return np.array(targets, dtype=object)
        if any(isinstance(target, str) for target in targets):
            raise OptionError("Targets of this stream are numbers, or null for one that will never come.")
        return np.array([math.nan if target is None else target for target in targets], dtype=np.float64)


def _records(said: ValuePrediction | ClassPrediction, quantiles: Sequence[float]) -> list[dict[str, Any]]:
    if isinstance(said, ClassPrediction):
        _finite(said.probabilities)
        return said.records()
    _finite(said.variance)
    return said.records(quantiles)


def _finite(values: Any) -> np.ndarray:
    """Refuse predictions that JSON could not hold."""
    if not np.isfinite(values).all():
        raise ValueRangeError("These rows are too far from all that was learned for numbers. Look for a slip in them.")
    return np.asarray(values)
