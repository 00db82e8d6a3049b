"""A stream with all that estimators share: learners of its outputs, labels, scores and a watch for changes."""

from collections.abc import Hashable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int

from streamgp.errors import OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.streams.drift import DriftWatch
from streamgp.streams.explaining import Explanation, explain
from streamgp.streams.from_fit import batch_forecast, fit_rows, learner_from_fit
from streamgp.streams.learner import StreamLearner, Ticket
from streamgp.streams.merging import merge
from streamgp.streams.options import StreamOptions
from streamgp.streams.score import INTERVAL, ClassScore, Said, ValueScore
from streamgp.tables.values import LARGEST
from streamgp.training import FitResult

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ClassPrediction", "StreamModel", "StreamTicket", "ValuePrediction"]

# Rows that are predicted, shown to a detector and learned together; with more, the model reacts later.
_MOST_TESTED = 64


@final
@dataclass(frozen=True, eq=False)
class ValuePrediction:
    """Prediction of the targets of rows, noise included, in the user's units.

    Attributes:
        forecasts: One for each output.
        is_single_output: Whether there is one output, without an axis of its own.
        names: Names of the outputs, for tables.
        index: Index of the rows, for tables.
    """

    forecasts: tuple[Any, ...]
    is_single_output: bool = True
    names: tuple[str, ...] = ()
    index: Any = None

    @property
    def mean(self) -> Float[np.ndarray, "n ..."]:
        """Means."""
        return self._joined([each.mean for each in self.forecasts])

    @property
    def variance(self) -> Float[np.ndarray, "n ..."]:
        """Variances."""
        return self._joined([each.variance for each in self.forecasts])

    @property
    def deviation(self) -> Float[np.ndarray, "n ..."]:
        """Standard deviations."""
        return np.sqrt(self.variance)

    def quantiles(self, probabilities: Any) -> Float[np.ndarray, "n ... k"]:
        """Return quantiles."""
        return self._joined([each.quantiles(probabilities) for each in self.forecasts])

    def log_density(self, y: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, " n"]:
        """Return log densities of targets, or log probabilities of counts, summed over outputs."""
        lines = np.asarray(y, dtype=np.float64).reshape(len(y), len(self.forecasts)).T
        return np.sum([each.log_density(line) for each, line in zip(self.forecasts, lines, strict=True)], axis=0)

    def errors(self, y: Float[np.ndarray, "n ..."]) -> list[float]:
        """Return absolute errors in standard deviations, averaged over outputs that are known; zero if none is."""
        errors = np.abs(np.asarray(y) - self.mean) / np.maximum(self.deviation, np.finfo(float).tiny)
        errors = errors.reshape(len(errors), -1)
        known = np.isfinite(errors)
        return (np.where(known, errors, 0.0).sum(1) / np.maximum(known.sum(1), 1)).tolist()

    def frame(self, quantiles: Sequence[float] = INTERVAL) -> "pd.DataFrame":
        """Return means, standard deviations and quantiles as a table."""
        import pandas as pd

        columns: dict[str, np.ndarray] = {}
        for output, forecast in enumerate(self.forecasts):
            name = self.names[output] if output < len(self.names) else f"y{output}"
            prefix = "" if self.is_single_output else f"{name} "
            columns |= {f"{prefix}mean": forecast.mean, f"{prefix}std": np.sqrt(forecast.variance)}
            each = forecast.quantiles(quantiles)
            columns |= {f"{prefix}{100 * p:g} %": each[:, i] for i, p in enumerate(quantiles)}
        return pd.DataFrame(columns, index=self.index)

    def records(self, quantiles: Sequence[float] = INTERVAL) -> list[dict[str, Any]]:
        """Return a mapping for each row, as JSON holds them: mean, std, quantiles; by output if there are several."""
        said = []
        for forecast in self.forecasts:
            columns = (
                forecast.mean.tolist(),
                np.sqrt(forecast.variance).tolist(),
                forecast.quantiles(quantiles).tolist(),
            )
            names = list(map(str, quantiles))
            said.append(
                [
                    {"mean": mean, "std": std, "quantiles": dict(zip(names, ends, strict=True))}
                    for mean, std, ends in zip(*columns, strict=True)
                ]
            )
        if self.is_single_output:
            return said[0]
        return [dict(zip(self.names, each, strict=True)) for each in zip(*said, strict=True)]

    def _joined(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return parts[0] if self.is_single_output else np.stack(parts, axis=1)


@final
@dataclass(frozen=True, eq=False)
class ClassPrediction:
    """Probabilities of the labels of rows.

    Attributes:
        classes: Labels, in the order in which they came.
        probabilities: Probabilities of these; those of a lone label leave some for one that is to come.
        index: Index of the rows, for tables.
    """

    classes: tuple[Any, ...]
    probabilities: Float[np.ndarray, "n k"]
    index: Any = None

    @property
    def labels(self) -> list[Any]:
        """Most probable label of each row."""
        return [self.classes[index] for index in self.probabilities.argmax(1).tolist()]

    def errors(self, y: Sequence[Any]) -> list[float]:
        """Return one for each row that is predicted wrongly, and zero for others."""
        return [float(label is not None and label != each) for label, each in zip(y, self.labels, strict=True)]

    def frame(self) -> "pd.DataFrame":
        """Return the most probable label and the probabilities of all as a table."""
        import pandas as pd

        columns: dict[Any, Any] = {"label": self.labels}
        columns |= dict(zip([f"probability of {each}" for each in self.classes], self.probabilities.T, strict=True))
        return pd.DataFrame(columns, index=self.index)

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping for each row, as JSON holds them: the most probable label, and probabilities by label."""
        each = [dict(zip(self.classes, row, strict=True)) for row in self.probabilities.tolist()]
        return [{"label": label, "probabilities": row} for label, row in zip(self.labels, each, strict=True)]


@final
@dataclass(frozen=True, eq=False)
class StreamTicket:
    """Rows that were asked for, and whose targets are still to come.

    Attributes:
        tickets: One for each output.
        prediction: What was said of them.
        num_seen: Number of rows learned before.
    """

    tickets: tuple[Ticket, ...]
    prediction: ValuePrediction | ClassPrediction
    num_seen: int

    @property
    def inputs(self) -> Float[np.ndarray, "n d"]:
        """Inputs of the rows."""
        return self.tickets[0].inputs


@final
@dataclass(eq=False)
class StreamModel:
    """All that is known of a stream; changed in place, row by row.

    Attributes:
        options: Options of the learners.
        is_label: Whether targets are labels.
        watch: Detector of changes; None if there is none.
        learners: One for each output; none before the first row.
        is_single_output: Whether targets have no axis for outputs.
        classes: Labels so far, in the order in which they came.
        num_seen: Number of rows learned.
        score: How good predictions of rows were, before they were learned.
        fits: What fits of rows without an order returned, one for each output; none once a row of a stream has come.
    """

    options: StreamOptions
    is_label: bool = False
    watch: DriftWatch | None = None
    learners: tuple[StreamLearner, ...] = ()
    is_single_output: bool = True
    classes: tuple[Any, ...] = ()
    num_seen: int = 0
    score: ValueScore | ClassScore = field(default_factory=ValueScore)
    fits: tuple[FitResult, ...] = ()

    @classmethod
    def begin(cls, options: StreamOptions, *, is_label: bool = False, watch: DriftWatch | None = None) -> "StreamModel":
        """Return a model that has seen nothing."""
        return cls(options, is_label, watch, score=ClassScore() if is_label else ValueScore())

    @property
    def first(self) -> StreamLearner:
        """Learner of the first output; there must have been a row."""
        if not self.learners or not self.num_seen:
            raise UnsupportedError("There is nothing to predict from before the first row. Learn one first.")
        return self.learners[0]

    @property
    def is_warm(self) -> bool:
        """True if there are rows enough to test predictions by."""
        return bool(self.learners) and self.learners[0].num_since_start >= self.options.warmup

    @property
    def num_drifts(self) -> int:
        """Number of changes that a detector found and that were acted upon."""
        return 0 if self.watch is None else self.watch.num_drifts

    def predict(
        self, X: Float[np.ndarray, "n d"], total_count: Float[np.ndarray, " n"] | None = None, *, horizon: Any = 1
    ) -> ValuePrediction | ClassPrediction:
        """Predict rows that are `horizon` rows ahead."""
        self._check_counts(total_count)
        first = self.first
        counts: dict[str, Any] = {} if total_count is None else {"total_count": total_count}
        if self.is_label:
            return self._classes_said(first.predict(X, horizon=horizon))
        if self.fits and isinstance(horizon, int) and horizon == 1:
            return ValuePrediction(
                tuple(batch_forecast(each, X, total_count) for each in self.fits), self.is_single_output
            )
        return ValuePrediction(
            tuple(each.predict(X, horizon=horizon, **counts) for each in self.learners), self.is_single_output
        )

    def learn(
        self,
        X: Float[np.ndarray, "n d"],
        y: Any,
        total_count: Float[np.ndarray, " n"] | None = None,
        *,
        weights: Float[np.ndarray, " n"] | None = None,
    ) -> None:
        """Learn the next rows, in order.

        Args:
            X: Inputs.
            y: Targets, NaN where one is missing; labels, None where one is missing.
            total_count: Numbers of trials of binomial targets.
            weights: Weights of rows: the noise has the variance that is usual, over the weight.
        """
        if not len(y):
            return
        self._check_rows(X, y, total_count)
        y = list(y) if self.is_label else y
        before, self.fits = (deepcopy(self.watch), self.fits), ()
        try:
            if self.watch is None:
                self._learn(X, y, total_count, weights)
            else:
                self._learn_watched(self.watch, X, y, total_count, weights)
        except BaseException:
            self.watch, self.fits = before  # a row that is refused was not seen
            raise

    def _learn_watched(
        self, watch: DriftWatch, X: np.ndarray, y: Any, total_count: np.ndarray | None, weights: np.ndarray | None
    ) -> None:
        """Predict rows, test the errors, and only then learn them; after a change the others without a test."""
        for start in range(0, len(y), _MOST_TESTED):
            rows = slice(start, start + _MOST_TESTED)
            part: list[Any] = [None if each is None else each[rows] for each in (X, y, total_count, weights)]
            if self.is_warm:
                change = watch.inspect(self.predict(part[0], part[2]).errors(part[1]))
                if change is not None:
                    head: list[Any] = [None if each is None else each[:change] for each in part]
                    self._learn(*head)
                    self._begin_again()
                    part = [None if each is None else each[change:] for each in part]
            self._learn(*part)

    def expect(self, X: Float[np.ndarray, "n d"], total_count: Float[np.ndarray, " n"] | None = None) -> StreamTicket:
        """Predict the next rows, whose targets come later."""
        self._check_counts(total_count)
        assert self.first is self.learners[0]
        counts: dict[str, Any] = {} if total_count is None else {"total_count": total_count}
        tickets = tuple(each.expect(X, **counts) for each in self.learners)
        self.fits = ()
        if self.is_label:
            said: ValuePrediction | ClassPrediction = self._classes_said(tickets[0].prediction)
        else:
            said = ValuePrediction(tuple(each.prediction for each in tickets), self.is_single_output)
        return StreamTicket(tickets, said, self.num_seen)

    def learn_ticket(self, ticket: StreamTicket, y: Any, weights: Float[np.ndarray, " n"] | None = None) -> None:
        """Learn the targets of rows that were asked for, and judge by what was said then."""
        n = len(ticket.inputs)
        if len(ticket.tickets) != len(self.learners) or len(y) != n:
            raise ShapeError(
                f"There must be one target for each of the {n} rows of the ticket and each of the "
                f"{len(self.learners)} outputs, but y has {len(y)}."
            )
        if not self.is_label and np.asarray(y).reshape(n, -1).shape[1] != len(self.learners):
            raise ShapeError(
                f"There must be one target for each of the {n} rows of the ticket and each of the "
                f"{len(self.learners)} outputs, but y has shape {np.shape(y)}."
            )
        if self.watch is not None and self.is_warm:
            change = self.watch.inspect(ticket.prediction.errors(y))
            if change is not None:
                self._begin_again()
        noises = None if weights is None else 1.0 / weights
        leads = ticket.tickets[0].leads
        if self.is_label:
            known = [label is not None for label in y]
            self._add_classes([label for label in y if label is not None])
            self.learners[0].learn_ticket(ticket.tickets[0], self._indices(y), noises)
            assert isinstance(ticket.prediction, ClassPrediction)
            assert isinstance(self.score, ClassScore)
            chosen = np.flatnonzero(known)
            self.score.add(
                [y[index] for index in chosen],
                ticket.prediction.classes,
                ticket.prediction.probabilities[chosen],
                ticket.num_seen,
            )
            self.num_seen += int(sum(known))
            return
        assert isinstance(self.score, ValueScore)
        targets = np.asarray(y, dtype=np.float64).reshape(n, -1)
        said: list[Said] = [[] for _ in self.learners]
        for output, learner in enumerate(self.learners):
            learner.learn_ticket(
                ticket.tickets[output], targets[:, output], noises, on_predicted=_collect(said[output])
            )
        self.num_seen += int(np.isfinite(targets).any(1).sum())
        self.score.add(targets, said, leads)

    def learn_unordered(
        self,
        X: Float[np.ndarray, "n d"],
        y: Any,
        total_count: Float[np.ndarray, " n"] | None = None,
        *,
        num_inducing: int | str = "auto",
    ) -> None:
        """Learn first rows whose order means nothing; values as `streamgp.fit` does by default."""
        self._check_rows(X, y, total_count)
        if self.is_label:
            y = list(y)
            self._add_classes(y)
            self._make_learners(X.shape[1], 1)
            self.learners[0].learn_unordered(X, self._indices(y))
            self.num_seen = len(y)
            return
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        fits, learners = [], []
        for column in targets.T:
            known = np.isfinite(column)
            counts = None if total_count is None else total_count[known]
            result = fit_rows(X[known], column[known], self.options, counts, num_inducing=num_inducing)
            fits.append(result)
            learners.append(learner_from_fit([result], self.options, X.min(0), X.max(0), len(y)))
        self.fits, self.learners, self.num_seen = tuple(fits), tuple(learners), len(y)

    def with_classes(self, labels: Sequence[Hashable]) -> None:
        """Make room for labels that are to come."""
        self._add_classes(labels)

    def sample(
        self,
        X: Float[np.ndarray, "n d"],
        num_samples: int,
        rng: np.random.Generator,
        *,
        latent: bool = False,
        total_count: Float[np.ndarray, " n"] | None = None,
    ) -> Float[np.ndarray, "s n ..."]:
        """Draw targets, functions, or probabilities of labels, for all rows together."""
        self._check_counts(total_count)
        counts: dict[str, Any] = {} if total_count is None else {"total_count": total_count}
        assert self.first is self.learners[0]
        draws = [each.sample(X, num_samples, rng, latent=latent, **counts) for each in self.learners]
        if self.is_label:
            return draws[0][..., : len(self.classes)]
        return draws[0] if self.is_single_output else np.stack(draws, axis=-1)

    def explain(self, X: Float[np.ndarray, "n d"]) -> tuple[Explanation, ...]:
        """Return which experts say what of rows, by the first output."""
        return explain(self.first, X)

    @property
    def is_refitting(self) -> bool:
        """True while a refit runs in the background."""
        return any(each.is_refitting for each in self.learners)

    def set_refit(self, refit: str | int) -> None:
        """Change when hyperparameters are learned again, from now on."""
        self.options = replace(self.options, refit=refit)
        for each in self.learners:
            each.options = replace(each.options, refit=refit)

    @staticmethod
    def merged(models: "Sequence[StreamModel]", base: "StreamModel | None") -> "StreamModel":
        """Return a model that knows the rows of all; those of the base count once. The score is that of the first."""
        everyone = [*models, *([] if base is None else [base])]
        if any(each.classes != models[0].classes for each in everyone):
            raise OptionError(
                "The models have different classes, or met them in another order. Name the classes in the first call "
                "of partial_fit, and let all models begin as copies."
            )
        if any(len(each.learners) != len(models[0].learners) for each in everyone):
            raise OptionError("The models have different numbers of outputs. Merge models of one stream.")
        bases: Sequence[StreamLearner | None] = [None] * len(models[0].learners) if base is None else base.learners
        parts = zip(*(each.learners for each in models), strict=True)
        learners = tuple(merge(each, start) for each, start in zip(parts, bases, strict=True))
        first = models[0]
        return replace(first, learners=learners, num_seen=learners[0].num_seen, score=first.score.copied())

    def _learn(
        self,
        X: Float[np.ndarray, "n d"],
        y: Any,
        total_count: Float[np.ndarray, " n"] | None = None,
        weights: Float[np.ndarray, " n"] | None = None,
    ) -> None:
        """Learn checked rows, and score what was said of them."""
        if not len(y):
            return
        noises = None if weights is None else 1.0 / weights
        if self.is_label:
            self._learn_labels(X, y, noises)
            return
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        self._make_learners(X.shape[1], targets.shape[1])
        counts: dict[str, Any] = {} if total_count is None else {"total_count": total_count}
        said: list[Said] = [[] for _ in self.learners]
        for output, learner in enumerate(self.learners):
            learner.learn(X, targets[:, output], noises, on_predicted=_collect(said[output]), **counts)
        self.num_seen += int(np.isfinite(targets).any(1).sum())
        assert isinstance(self.score, ValueScore)
        self.score.add(targets, said)

    def _learn_labels(
        self, X: Float[np.ndarray, "n d"], y: Sequence[Any], noises: Float[np.ndarray, " n"] | None
    ) -> None:
        """Learn rows with labels; a class that is new is one from its first row on."""
        if not self.num_seen:
            # Nothing was predicted yet, so that the classes of all rows may be known at once.
            self._add_classes([label for label in y if label is not None])
        self._make_learners(X.shape[1], 1)
        firsts = {label: row for row, label in reversed(list(enumerate(y))) if label is not None}
        starts = sorted(row for label, row in firsts.items() if label not in self.classes)
        for start, stop in pairwise([0, *starts, len(y)]):
            part, before = y[start:stop], self.classes
            if not len(part):
                continue
            self._add_classes([label for label in part[:1] if label is not None])
            said: Said = []
            weights = None if noises is None else noises[start:stop]
            self.learners[0].learn(X[start:stop], self._indices(part), weights, on_predicted=_collect(said))
            self._score_labels(part, said, before)

    def _score_labels(self, y: Sequence[Any], said: Said, before: Sequence[Any]) -> None:
        assert isinstance(self.score, ClassScore)
        predicted: list[np.ndarray | None] = [None] * len(y)
        for rows, forecast in said:
            probabilities = self._classes_said(forecast).probabilities
            for index, row in enumerate(rows.tolist()):
                predicted[row] = probabilities[index : index + 1]
        for row, label in enumerate(y):
            if label is None:
                continue
            classes, each = self.classes, predicted[row]
            if each is not None and row == 0 and len(before) < len(classes):
                # Nobody knew of the class of the first row.
                classes, each = tuple(before), each[:, : len(before)]
                if len(before) > 1:
                    each = each / np.maximum(each.sum(1, keepdims=True), np.finfo(float).tiny)
            self.score.add([label], classes, each, self.num_seen)
            self.num_seen += 1

    def _classes_said(self, forecast: Any) -> ClassPrediction:
        return ClassPrediction(self.classes, forecast.probabilities[:, : len(self.classes)])

    def _make_learners(self, num_dims: int, num_outputs: int) -> None:
        if not self.learners:
            kinds: dict[str, Any] = {"num_classes": max(len(self.classes), 2)} if self.is_label else {}
            self.learners = tuple(StreamLearner(num_dims, self.options, **kinds) for _ in range(num_outputs))

    def _add_classes(self, labels: Sequence[Hashable]) -> None:
        new = [label for label in dict.fromkeys(labels) if label not in self.classes]
        if not new:
            return
        self.classes = (*self.classes, *new)
        for learner in self.learners:
            if len(self.classes) > learner.num_classes:
                learner.with_classes(len(self.classes))

    def _indices(self, y: Sequence[Any]) -> Float[np.ndarray, " n"]:
        places = {label: index for index, label in enumerate(self.classes)}
        return np.array([np.nan if label is None else places[label] for label in y], dtype=np.float64)

    def _begin_again(self) -> None:
        assert self.watch is not None
        self.score.recent.note_drift(self.score.num_targets)
        for learner in self.learners:
            learner.reset() if self.watch.action == "reset" else learner.rewarm()

    def _check_rows(self, X: np.ndarray, y: Any, total_count: np.ndarray | None) -> None:
        """Refuse targets that do not fit those before, and what cannot be learned."""
        self._check_counts(total_count)
        _check_size(X, "X")
        if self.is_label:
            return
        y = np.asarray(y, dtype=np.float64)
        if y.ndim == 1 and not self.learners:
            self.is_single_output = True
        elif not self.learners:
            self.is_single_output = False
        elif (y.ndim == 1) != self.is_single_output or y.reshape(len(y), -1).shape[1] != len(self.learners):
            expected = "(n,)" if self.is_single_output else f"(n, {len(self.learners)})"
            raise ShapeError(f"y must have shape {expected}, as the rows before, but has shape {y.shape}.")
        _check_size(y, "y")
        if np.isinf(y).any():
            raise ValueRangeError(
                "y must be finite, but holds infinity. Leave out rows without a target; NaN may stand for some of "
                "several targets."
            )

    def _check_counts(self, total_count: np.ndarray | None) -> None:
        """Refuse numbers of trials for other than binomial targets, and those without."""
        likelihood = self.options.likelihood
        if total_count is None and not self.is_label and likelihood == "binomial":
            raise OptionError(
                "Binomial targets are successes out of numbers of trials, but there is no total_count. Pass it, one "
                "number or one for each row."
            )
        if total_count is not None and (self.is_label or likelihood in ("gaussian", "student_t", "poisson")):
            name = "of labels" if self.is_label else repr(likelihood)
            raise OptionError(
                f"total_count holds numbers of trials, but the likelihood is {name}. Leave it out, or choose "
                "likelihood='binomial'."
            )


def _check_size(values: np.ndarray, name: str) -> None:
    """Refuse numbers whose squares overflow."""
    is_large = np.abs(values) > LARGEST
    if is_large.any() and np.isfinite(largest := values[is_large][0]):
        raise ValueRangeError(f"{name} holds {largest:g}, and numbers beyond {LARGEST:g} cannot be learned from.")


def _collect(said: Said) -> Any:
    def note(rows: Int[np.ndarray, " r"], forecast: Any) -> None:
        said.append((rows, forecast))

    return note
