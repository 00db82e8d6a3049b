"""A stream whose inputs are features by name."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, final

import numpy as np
import torch
from jaxtyping import Float

from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.integrations.river.features import FeatureTable
from streamgp.streaming import OneVsRest, StreamLearner
from streamgp.streaming.drift import DriftWatch
from streamgp.streaming.scoring import ClassScore, ValueScore
from streamgp.streaming.space_time import SpaceTimeLearner
from streamgp.streaming.widening import widen

__all__ = ["Learner", "NamedStream"]

Learner = TypeVar("Learner", StreamLearner, OneVsRest, StreamLearner | SpaceTimeLearner)


@final
@dataclass(frozen=True, eq=False)
class NamedStream(Generic[Learner]):
    """What is known of a stream, and which feature is which input.

    Attributes:
        learner: What is known.
        score: How good rows were predicted before they were learned.
        watch: Detector of changes; None if there is none.
        features: The features.
    """

    learner: Learner
    score: ValueScore | ClassScore
    watch: DriftWatch | None = None
    features: FeatureTable = field(default_factory=FeatureTable)

    def predict(self, names: Sequence[Hashable], values: np.ndarray) -> Any:
        """What the learner says of rows: a `StreamPrediction`, or probabilities of labels; None before the first."""
        return self.learner.predict(self._inputs(names, values)) if self.learner.num_seen else None

    def learn(
        self, names: Sequence[Hashable], values: np.ndarray, y: Any, weights: np.ndarray | None = None
    ) -> "NamedStream[Learner]":
        """Learn rows.

        Args:
            names: Of their features.
            values: Of these, `(n, k)`.
            y: Targets: an array, or a sequence of labels.
            weights: Weights of the rows, which real targets alone may have; None if all count alike.
        """
        stream = self._with_features(names, values)
        X = stream._inputs(names, values)
        stream = stream._watched(lambda: _errors(stream.learner, X, y))
        score = stream.score

        def add(part: Any) -> None:
            nonlocal score
            score = score.learned(part)

        if weights is not None and not isinstance(stream.learner, SpaceTimeLearner):
            raise UnsupportedError("Rows have weights w only for real targets, with half_life='auto'. Leave w out.")
        learner: Any = stream.learner
        given: dict[str, Any] = {} if weights is None else {"weights": weights}
        learner, _ = learner.learn(X, y, on_predicted=add, **given)
        return NamedStream(learner, score, stream.watch, stream.features)

    def _inputs(self, names: Sequence[Hashable], values: np.ndarray) -> Float[np.ndarray, "n d"]:
        """Inputs from values `(n, k)` of features by name."""
        return self.features.columns(names, values)

    def _with_features(self, names: Sequence[Hashable], values: np.ndarray) -> "NamedStream[Learner]":
        """Take note of values `(n, k)` of features that are about to be learned."""
        learner, features = self.learner, self.features
        new = [] if learner.is_warm else features.new_names(names)
        if new:
            first = np.array([values[0, list(names).index(name)] for name in new])
            learner, features = _widened(learner, first), features.with_columns(new)
        if not features.names:
            raise ValueRangeError("A row must have at least one feature, but the first one has none.")
        return NamedStream(learner, self.score, self.watch, features.observe(names, values))

    def _watched(self, errors: Callable[[], Sequence[float]]) -> "NamedStream[Learner]":
        """Show the detector the errors of rows that are about to be learned, and begin anew if it finds a change."""
        if self.watch is None or not self.learner.is_warm:
            return self
        watch, change = self.watch.inspect(errors())
        learner = self.learner
        if change is not None:
            learner = learner.reset() if watch.action == "reset" else learner.rewarm()
        return replace(self, learner=learner, watch=watch)


def _errors(learner: StreamLearner | OneVsRest | SpaceTimeLearner, X: Float[np.ndarray, "n d"], y: Any) -> list[float]:
    """How wrong predictions of rows are: 0 or 1 for labels, else in standard deviations, averaged over outputs."""
    if isinstance(learner, OneVsRest):
        best = learner.predict(X).argmax(-1).tolist()
        return [float(learner.classes[index] != label) for index, label in zip(best, y, strict=True)]
    prediction = learner.predict(X)
    errors = (torch.as_tensor(y) - prediction.mean).abs() / prediction.variance.sqrt()
    return errors.reshape(len(y), -1).mean(-1).tolist()


def _widened(learner: Learner, values: Float[np.ndarray, " k"]) -> Learner:
    """A learner with more inputs, which all of its rows get these values of."""
    if isinstance(learner, OneVsRest):
        return replace(learner, learner=None if learner.learner is None else widen(learner.learner, values))
    return learner.widened(values) if isinstance(learner, SpaceTimeLearner) else widen(learner, values)
