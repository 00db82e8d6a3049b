"""Scores of a stream's predictions, each made before its row was learned: sums of constant size."""

import copy
import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

__all__ = [
    "CLASS_MEASURES",
    "INTERVAL",
    "VALUE_MEASURES",
    "Calibration",
    "ClassScore",
    "Recent",
    "RunningTotals",
    "ValueScore",
    "label_loss",
    "unseen_probability",
]

# Ends of the interval that should hold 90 % of the targets.
INTERVAL = (0.05, 0.95)
VALUE_MEASURES = (
    "squared_error",
    "absolute_error",
    "negative_log_density",
    "is_covered",
    "absolute_error_last",
    "absolute_error_mean",
    "squared_error_last",
    "squared_error_mean",
    "error",
)
CLASS_MEASURES = ("is_correct", "brier", "negative_log_density", "is_most_frequent", "is_last")
# Points of the history at most; larger draws finer pictures than the eye can tell apart.
_MOST_POINTS = 512
_NUM_BINS = 20
# Latest predictions that are kept for pictures.
_MOST_RECENT = 300
# Rows ahead, by powers of two, whose coverage is counted apart; the last group holds all that are farther.
_NUM_HORIZONS = 12
# Fewer targets may be whole numbers by chance, and larger ones are hardly counts.
_ENOUGH_COUNTS, _LARGEST_COUNT = 50, 1000.0
# Sum of probabilities below one that is rounding.
_ROUNDING = 1e-9
_TINY = sys.float_info.min

# Rows that were predicted, and how.
Said = list[tuple[np.ndarray, Any]]


def unseen_probability(known: float, num_seen: int) -> float:
    """Return the probability of labels that never came.

    Args:
        known: Sum of the probabilities of known labels. What a lone one leaves is for the others; where they leave
            nothing, a label that never came has the probability of one that came once, by the rule of succession.
        num_seen: Number of rows so far.
    """
    left = 1.0 - known
    return left if left > _ROUNDING else 1.0 / (num_seen + 1.0)


@final
@dataclass(eq=False)
class RunningTotals:
    """Sums of measures over rows, and their history: after every `spacing` rows, at most 512 times.

    Attributes:
        measures: Names of the measures.
        num_rows: Number of rows.
        totals: Sum of each measure.
        history: Number of rows and sums at some rows; where there are too many, every second one is dropped.
        spacing: Number of rows between two points of the history.
    """

    measures: tuple[str, ...]
    num_rows: int = 0
    totals: Float[np.ndarray, " k"] = field(default_factory=lambda: np.zeros(0))
    history: Float[np.ndarray, "h c"] = field(default_factory=lambda: np.zeros((0, 0)))
    spacing: int = 1

    def __post_init__(self) -> None:
        if not self.totals.size:
            self.totals = np.zeros(len(self.measures))
            self.history = np.zeros((0, 1 + len(self.measures)))

    def add(self, values: Float[np.ndarray, "n k"]) -> None:
        """Add rows, with a number for each measure."""
        first, n = self.num_rows, len(values)
        self.num_rows = first + n
        if n == 1 and self.num_rows % self.spacing:
            self.totals = self.totals + values[0]
            return
        sums = self.totals + np.cumsum(values, axis=0)
        self.totals = sums[-1]
        rows = np.arange(first + 1, self.num_rows + 1)
        due = rows % self.spacing == 0
        self.history = np.vstack([self.history, np.c_[rows[due], sums[due]]])
        while len(self.history) > _MOST_POINTS:
            self.spacing *= 2
            self.history = self.history[self.history[:, 0] % self.spacing == 0]

    def mean(self, measure: str) -> float:
        """Mean of a measure over all rows; NaN before the first."""
        return float(self.totals[self.measures.index(measure)]) / self.num_rows if self.num_rows else math.nan


@final
@dataclass(eq=False)
class Calibration:
    """Predicted probabilities and what came of them, in bins of equal width.

    Of values they are those of at most the target, and each bin should hold as many. Of classes they are those of each
    class, and as many as they say should have come true.

    Attributes:
        counts: Number of probabilities in each bin.
        totals: Their sums.
        num_true: Number of them that came true.
    """

    counts: Float[np.ndarray, " 20"] = field(default_factory=lambda: np.zeros(_NUM_BINS))
    totals: Float[np.ndarray, " 20"] = field(default_factory=lambda: np.zeros(_NUM_BINS))
    num_true: Float[np.ndarray, " 20"] = field(default_factory=lambda: np.zeros(_NUM_BINS))

    def add(self, probabilities: Float[np.ndarray, " n"], is_true: Float[np.ndarray, " n"] | None = None) -> None:
        """Count probabilities, and for classes which came true."""
        bins = np.minimum((probabilities * _NUM_BINS).astype(np.intp), _NUM_BINS - 1)
        np.add.at(self.counts, bins, 1.0)
        np.add.at(self.totals, bins, probabilities)
        if is_true is not None:
            np.add.at(self.num_true, bins, is_true)

    def frequencies(self) -> Float[np.ndarray, " 20"]:
        """Return, for values, the shares that lay below the upper end of each bin, which should equal it."""
        return np.asarray(np.cumsum(self.counts) / max(self.counts.sum(), 1.0))

    def histogram(self) -> tuple[Float[np.ndarray, " 21"], Float[np.ndarray, " 20"]]:
        """Return edges of the bins, and the density in each, which should be one for values."""
        return np.linspace(0.0, 1.0, _NUM_BINS + 1), self.counts * _NUM_BINS / max(self.counts.sum(), 1.0)

    def reliability(self) -> list[tuple[float, float, float]]:
        """Return, for classes, of each bin with any: mean probability, share that came true, and number."""
        each = zip(self.counts.tolist(), self.totals.tolist(), self.num_true.tolist(), strict=True)
        return [(total / count, true / count, count) for count, total, true in each if count]


@final
@dataclass(eq=False)
class Recent:
    """Latest predictions for pictures; intervals are worked out when they are asked for.

    Attributes:
        table: Row, target, mean, and both ends of the interval of earlier ones; for classes, target is the probability
            of the label that came, and the others are NaN.
        drifts: Rows at which a detector found a change; the latest ones.
    """

    table: Float[np.ndarray, "r 5"] = field(default_factory=lambda: np.zeros((0, 5)))
    drifts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self._pending: list[tuple[int, np.ndarray, Any]] = []
        self._num_pending = 0

    def note(self, first_row: int, targets: Float[np.ndarray, " n"], forecast: Any) -> None:
        """Keep what was said of rows; for classes, without a forecast, the probability of the label that came."""
        self._pending.append((first_row, targets, forecast))
        self._num_pending += len(targets)
        while self._num_pending - len(self._pending[0][1]) >= _MOST_RECENT:
            self._num_pending -= len(self._pending.pop(0)[1])

    def note_drift(self, row: int) -> None:
        """Keep a row at which a change was found."""
        self.drifts = (*self.drifts, row)[-_MOST_RECENT:]

    def settled(self) -> Float[np.ndarray, "r 5"]:
        """Return the latest predictions as a table."""
        # One by one, so that the table does not depend on when it was asked for, to the last bit.
        parts = [self.table, *(_drawn(first + np.arange(len(y)), y, said) for first, y, said in self._pending)]
        self.table = np.vstack(parts)[-_MOST_RECENT:]
        self._pending, self._num_pending = [], 0
        return self.table


def _drawn(rows: Int[np.ndarray, " n"], y: Float[np.ndarray, " n"], forecast: Any) -> Float[np.ndarray, "n 5"]:
    if forecast is None:
        return np.c_[rows, y, np.full((len(y), 3), np.nan)]
    return np.c_[rows, y, forecast.mean, forecast.quantiles(INTERVAL)]


@final
@dataclass(eq=False)
class ValueScore:
    """Scores of values or counts, beside those of two baselines that look at no input; of constant size.

    Attributes:
        metrics: Sums over the rows that were predicted.
        calibration: Predicted probabilities of at most the targets.
        num_targets: Number of targets so far, predicted or not.
        last: Last target of each output.
        mean: Mean target of each output.
        largest: Largest target so far; infinite once one was no count.
        is_discrete: Whether targets are predicted as counts.
        horizons: Number of rows, and of those in their intervals, by powers of two of rows ahead.
        num_unscored: Number of rows whose score was not finite.
        recent: The latest predictions of the first output.
    """

    metrics: RunningTotals = field(default_factory=lambda: RunningTotals(VALUE_MEASURES))
    calibration: Calibration = field(default_factory=Calibration)
    num_targets: int = 0
    last: Float[np.ndarray, " o"] = field(default_factory=lambda: np.zeros(0))
    mean: Float[np.ndarray, " o"] = field(default_factory=lambda: np.zeros(0))
    largest: float = 0.0
    is_discrete: bool = False
    horizons: Float[np.ndarray, "2 12"] = field(default_factory=lambda: np.zeros((2, _NUM_HORIZONS)))
    num_unscored: int = 0
    recent: Recent = field(default_factory=Recent)

    def add(
        self,
        y: Float[np.ndarray, "n o"],
        said: Sequence[Said],
        leads: Int[np.ndarray, " n"] | None = None,
    ) -> None:
        """Score rows in their order; those of which a target is missing do not count.

        Args:
            y: Targets of all outputs.
            said: For each output, which rows were predicted, and how.
            leads: Rows whose targets were still to come when it was said; none by default.
        """
        mean, density, upper, lower = np.full((4, *y.shape), np.nan)
        before, knows_cumulative = self.num_targets, True
        for output, parts in enumerate(said):
            for rows, forecast in parts:
                targets = y[rows, output]
                mean[rows, output], density[rows, output] = forecast.mean, forecast.log_density(targets)
                upper[rows, output] = lower[rows, output] = below = forecast.cumulative(targets)
                if below[0] != below[0] and np.isfinite(targets).all():  # a likelihood that does not know it
                    knows_cumulative, ends = False, forecast.quantiles(INTERVAL)
                    upper[rows, output] = lower[rows, output] = 0.5 * (
                        (targets >= ends[:, 0]).astype(float) + (targets > ends[:, 1])
                    )
                elif forecast.is_discrete:
                    self.is_discrete, lower[rows, output] = True, forecast.below(targets)
                if output == 0:
                    self.recent.note(before + 1 + int(rows[0]), targets, forecast)
        was_predicted = np.zeros(len(y), dtype=bool)
        for parts in said:
            for rows, _ in parts:
                was_predicted[rows] = True
        known = np.isfinite(y).all(1)
        if not known.all():
            y, mean, density, upper, lower = (each[known] for each in (y, mean, density, upper, lower))
            leads, was_predicted = None if leads is None else leads[known], was_predicted[known]
        lasts, means = self._baselines(y)
        # Baselines know nothing of the first row, also where `fit` has learned rows, which are none of the stream.
        was_predicted[: 0 if before else 1] = False
        error, by_last, by_mean = mean - y, lasts - y, means - y
        is_covered = (upper >= INTERVAL[0]) & (lower <= INTERVAL[1])
        each = (
            *(error * error, np.abs(error), -density, is_covered),
            *(np.abs(by_last), np.abs(by_mean), by_last * by_last, by_mean * by_mean, error),
        )
        num_outputs = y.shape[1]
        measures = np.concatenate(each, axis=1, dtype=np.float64)
        if num_outputs > 1:  # means over outputs, but for densities, which multiply
            measures = measures.reshape(len(y), len(each), num_outputs).mean(2)
            measures[:, 2] *= num_outputs
        is_finite = np.isfinite(measures).all(1)
        self.num_unscored += int((was_predicted & ~is_finite).sum())
        chosen = was_predicted & is_finite
        if not chosen.all():
            measures, upper, lower = measures[chosen], upper[chosen], lower[chosen]
            leads = None if leads is None else leads[chosen]
        if len(measures):
            self.metrics.add(measures)
            # Of whole numbers, half of the probability of the target itself counts.
            if knows_cumulative:
                self.calibration.add(np.clip(0.5 * (lower + upper), 0.0, 1.0).ravel())
            bins = np.zeros(len(measures), np.intp) if leads is None else _horizon_bins(leads)
            np.add.at(self.horizons[0], bins, 1.0)
            np.add.at(self.horizons[1], bins, measures[:, 3])

    @property
    def coverage_by_horizon(self) -> dict[str, tuple[int, float]]:
        """Number of rows and share of targets in their 90 % intervals, by how many rows ahead they were predicted."""
        found = {}
        for index, (count, covered) in enumerate(self.horizons.T.tolist()):
            if count:
                first, last = 2**index, 2 ** (index + 1) - 1
                name = "1" if index == 0 else f"{first}+" if index == _NUM_HORIZONS - 1 else f"{first} to {last}"
                found[name] = (int(count), covered / count)
        return found

    @property
    def seems_counts(self) -> bool:
        """Tell whether targets that are predicted as real numbers all were small whole numbers, none negative."""
        enough = self.num_targets >= _ENOUGH_COUNTS and self.largest > 1.0
        return enough and not self.is_discrete and self.largest <= _LARGEST_COUNT

    def copied(self) -> "ValueScore":
        """Return a score that later rows do not change."""
        return copy.deepcopy(self)

    def summary(self) -> dict[str, float]:
        """Return the metrics by name; NaN before the first row."""
        mean = self.metrics.mean
        return {
            "RMSE": math.sqrt(mean("squared_error")),
            "MAE": mean("absolute_error"),
            "bias": mean("error"),
            "NLPD": mean("negative_log_density"),
            "coverage of 90 %": mean("is_covered"),
            "RMSE of the last value": math.sqrt(mean("squared_error_last")),
            "MAE of the last value": mean("absolute_error_last"),
            "RMSE of the running mean": math.sqrt(mean("squared_error_mean")),
            "MAE of the running mean": mean("absolute_error_mean"),
        }

    def _baselines(self, y: Float[np.ndarray, "n o"]) -> tuple[np.ndarray, np.ndarray]:
        """Return the last values and the running means before each row, and take note of the rows."""
        n = len(y)
        if not n:
            return y, y
        if not self.num_targets:
            self.last, self.mean = y[0], np.zeros(y.shape[1])
        if n == 1:
            lasts, means = self.last[None], self.mean[None]
            self.mean = self.mean + (y[0] - self.mean) / (self.num_targets + 1)
        else:
            counts = self.num_targets + np.arange(n + 1)[:, None]
            sums = self.mean * self.num_targets + np.vstack([np.zeros_like(y[:1]), np.cumsum(y, axis=0)])
            means = sums / np.maximum(counts, 1)
            lasts = np.vstack([self.last, y[:-1]])
            self.mean, means = means[-1], means[:-1]
        self.num_targets, self.last = self.num_targets + n, y[-1].copy()
        if self.largest < math.inf:
            is_count = bool((y >= 0.0).all() and (y == np.floor(y)).all())
            self.largest = max(self.largest, float(y.max())) if is_count else math.inf
        return lasts, means


def _horizon_bins(leads: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    ahead = np.maximum(np.asarray(leads), 0) + 1
    return np.minimum(np.log2(ahead).astype(np.intp), _NUM_HORIZONS - 1)


@final
@dataclass(eq=False)
class ClassScore:
    """Scores of labels, beside those of two baselines that look at no input; of constant size.

    Attributes:
        metrics: Sums over the rows that were predicted.
        calibration: Predicted probabilities of the classes, and which came true.
        counts: Number of times that each label came.
        last: The last label.
        num_unscored: Number of rows whose score was not finite.
        recent: Probabilities of the latest labels that came.
    """

    metrics: RunningTotals = field(default_factory=lambda: RunningTotals(CLASS_MEASURES))
    calibration: Calibration = field(default_factory=Calibration)
    counts: tuple[tuple[Any, int], ...] = ()
    last: Any = None
    num_unscored: int = 0
    recent: Recent = field(default_factory=Recent)

    @property
    def num_targets(self) -> int:
        """Number of labels so far, predicted or not."""
        return sum(count for _, count in self.counts)

    def add(
        self,
        labels: Sequence[Hashable],
        classes: Sequence[Hashable] = (),
        probabilities: Float[np.ndarray, "n k"] | None = None,
        num_seen: int = 0,
    ) -> None:
        """Score rows in their order.

        Args:
            labels: Labels that came.
            classes: Labels that were known.
            probabilities: Predicted probabilities of these; None where nothing was said.
            num_seen: Number of rows learned before them.
        """
        for index, label in enumerate(labels):
            if probabilities is not None and self.counts:
                self._add_row(label, dict(zip(classes, probabilities[index].tolist(), strict=True)), num_seen + index)
            counts = dict(self.counts)
            counts[label] = counts.get(label, 0) + 1
            self.counts, self.last = tuple(counts.items()), label

    def _add_row(self, label: Hashable, each: Mapping[Hashable, float], num_seen: int) -> None:
        values = np.array(list(each.values()))
        is_true = np.array([float(label == known) for known in each])
        loss = label_loss(label, each, num_seen)
        # A label that was not known had probability zero.
        brier = float(((values - is_true) ** 2).sum()) + 1.0 - float(is_true.sum())
        frequent = max(self.counts, key=lambda each: each[1])[0]
        measures = np.array(
            [
                float(max(each, key=each.__getitem__) == label),
                brier,
                loss,
                float(label == frequent),
                float(label == self.last),
            ]
        )
        if not (np.isfinite(measures).all() and np.isfinite(values).all()):
            self.num_unscored += 1
            return
        self.metrics.add(measures[None])
        self.calibration.add(np.clip(values, 0.0, 1.0), is_true)
        self.recent.note(self.num_targets + 1, np.array([math.exp(-loss)]), None)

    def copied(self) -> "ClassScore":
        """Return a score that later rows do not change."""
        return copy.deepcopy(self)

    def summary(self) -> dict[str, float]:
        """Return the metrics by name; NaN before the first row."""
        mean = self.metrics.mean
        return {
            "accuracy": mean("is_correct"),
            "Brier": mean("brier"),
            "log loss": mean("negative_log_density"),
            "accuracy of the most frequent class": mean("is_most_frequent"),
            "accuracy of the last class": mean("is_last"),
        }


def label_loss(label: Hashable, probabilities: Mapping[Any, float], num_seen: int) -> float:
    """Return the negative log probability of a label, with some left for labels that never came.

    Args:
        label: The label.
        probabilities: Those of known labels.
        num_seen: Number of rows learned before it.
    """
    known = sum(probabilities.values())
    unseen = unseen_probability(known, num_seen)
    likely = (1.0 - unseen) * probabilities[label] / known if label in probabilities else unseen
    return -math.log(max(likely, _TINY))
