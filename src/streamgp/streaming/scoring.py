"""How good predictions of a stream were, each made before its row was learned."""

import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from streamgp.errors import NumericalError
from streamgp.streaming.baselines import ClassBaseline, ValueBaseline
from streamgp.streaming.calibration import Calibration
from streamgp.streaming.learner import Predicted
from streamgp.streaming.metrics import CLASS_MEASURES, VALUE_MEASURES, StreamMetrics
from streamgp.streaming.one_vs_rest import PredictedLabels, unseen_probability
from streamgp.streaming.prediction import StreamPrediction
from streamgp.streaming.space_time import ScoredRows

__all__ = ["INTERVAL", "ClassScore", "ValueScore", "label_loss"]

# The ends of the interval that should hold 90 % of the targets.
INTERVAL = (0.05, 0.95)
_TINY = sys.float_info.min


def label_loss(label: Hashable, probabilities: Mapping[Hashable, float], num_seen: int) -> float:
    """Negative log probability of a label, with some left for labels that never came.

    Args:
        label: The label that came.
        probabilities: Of the labels that were known.
        num_seen: Number of rows before it.
    """
    known = sum(probabilities.values())
    unseen = unseen_probability(known, num_seen)
    likely = (1.0 - unseen) * probabilities[label] / known if label in probabilities else unseen
    return -math.log(max(likely, _TINY))


@final
@dataclass(frozen=True)
class ValueScore:
    """Metrics of predicted values or counts; a frozen value of constant size.

    Attributes:
        metrics: Sums over rows that were predicted.
        baseline: The targets so far.
        calibration: Predictive probabilities of not more than the targets.
        is_discrete: Whether the targets are counts.
    """

    metrics: StreamMetrics = field(default_factory=lambda: StreamMetrics(VALUE_MEASURES))
    baseline: ValueBaseline = field(default_factory=ValueBaseline)
    calibration: Calibration = field(default_factory=Calibration)
    is_discrete: bool = False

    def add(
        self,
        y: Float[np.ndarray, "n o"],
        *,
        mean: Float[np.ndarray, "n o"],
        negative_log_density: Float[np.ndarray, " n"],
        is_covered: Bool[np.ndarray, "n o"],
        cumulative: Float[np.ndarray, "n o"] | None = None,
        is_ordered: bool = False,
    ) -> "ValueScore":
        """Score rows that were predicted.

        Args:
            y: Targets.
            mean: What was predicted.
            negative_log_density: Of the targets.
            is_covered: Whether they lie in their 90 % intervals.
            cumulative: Predictive probabilities of not more than the targets, if they are known.
            is_ordered: Whether the rows came one after the other, so that baselines know those before.
        """
        errors, values = (y - mean).tolist(), y.tolist()
        if is_ordered:
            baseline, by_baseline = self.baseline.follow(values)
        else:
            baseline, by_baseline = self.baseline.add(values), self.baseline.measures(values)
        measures = {
            "squared_error": [sum([each * each for each in row]) / len(row) for row in errors],
            "error": [-sum(row) / len(row) for row in errors],
            "absolute_error": [sum(map(abs, row)) / len(row) for row in errors],
            "negative_log_density": negative_log_density.tolist(),
            "is_covered": [sum(row) / len(row) for row in is_covered.tolist()],
            **by_baseline,
        }
        calibration = self.calibration if cumulative is None else self.calibration.add(cumulative.ravel().tolist())
        return ValueScore(self.metrics.add(measures), baseline, calibration, self.is_discrete)

    def learned(self, part: Predicted | ScoredRows) -> "ValueScore":
        """After rows that were learned."""
        if isinstance(part, ScoredRows):
            return self.scored(part)
        y = part.rows.targets.T
        if part.prediction is None or not self.baseline.num_rows:
            return self.seen(y)
        try:
            return self.predicted(part.prediction, y, part.log_densities)
        except NumericalError:
            return self.seen(y)  # a stream goes on

    def predicted(
        self,
        prediction: StreamPrediction,
        y: Float[np.ndarray, "n o"],
        log_densities: Float[np.ndarray, "e n"] | None = None,
    ) -> "ValueScore":
        """After rows that were predicted; there must have been targets before.

        Args:
            prediction: What was predicted.
            y: Targets.
            log_densities: Of these, by each expert, where they are known already.
        """
        is_discrete = prediction.likelihood.outcome_kind != "real"
        if log_densities is None:
            log_densities = prediction.log_densities(y.T)
        log_density = prediction.mixed(log_densities)
        cumulatives = prediction.cumulatives(y.T)
        if cumulatives is None:
            ends = prediction.quantiles(INTERVAL).reshape(*y.shape, 2).numpy()
            is_covered, middle = (ends[..., 0] <= y) & (y <= ends[..., 1]), None
        else:
            lower = upper = cumulatives
            if is_discrete:
                lower = np.maximum(upper - np.exp(log_density), 0.0)  # of less; counts have one output
            # Of whole numbers, half of the probability of the target itself counts.
            is_covered = ((upper >= INTERVAL[0]) & (lower <= INTERVAL[1])).T
            middle = (0.5 * (lower + upper)).T
        score = self if is_discrete == self.is_discrete else replace(self, is_discrete=is_discrete)
        return score.add(
            y,
            mean=prediction.means.T,
            negative_log_density=-log_density,
            is_covered=is_covered,
            cumulative=middle,
        )

    def scored(self, part: ScoredRows) -> "ValueScore":
        """After rows that were learned in order, of which the first ones may not have been predicted."""
        first, score = part.num_unpredicted, self
        if not (first or self.baseline.num_rows):  # rows that `fit` has learned are no rows of the stream
            first, part = 1, part.without_first()
        if first:
            score = score.seen(part.targets[:first])
        if len(part.mean):
            middle = part.cumulative
            score = score.add(
                part.targets[first:],
                mean=part.mean,
                negative_log_density=-part.log_density,
                is_covered=(middle >= INTERVAL[0]) & (middle <= INTERVAL[1]),
                cumulative=middle,
                is_ordered=True,
            )
        return score

    def seen(self, y: Float[np.ndarray, "n o"]) -> "ValueScore":
        """Take note of targets that nothing predicted."""
        return replace(self, baseline=self.baseline.add(y.tolist()))


@final
@dataclass(frozen=True)
class ClassScore:
    """Metrics of predicted classes; a frozen value of constant size.

    Attributes:
        metrics: Sums over rows that were predicted.
        baseline: The labels so far.
        calibration: Predictive probabilities of the classes, and which came true.
    """

    metrics: StreamMetrics = field(default_factory=lambda: StreamMetrics(CLASS_MEASURES))
    baseline: ClassBaseline = field(default_factory=ClassBaseline)
    calibration: Calibration = field(default_factory=Calibration)

    def add(
        self,
        labels: Sequence[Hashable],
        *,
        classes: Sequence[Hashable],
        probabilities: Float[np.ndarray, "n k"],
        negative_log_density: Sequence[float],
    ) -> "ClassScore":
        """Score rows that were predicted.

        Args:
            labels: The labels that came.
            classes: Those that were known.
            probabilities: What was predicted for these.
            negative_log_density: Of the labels.
        """
        is_true = [[float(label == each) for each in classes] for label in labels]
        rows = list(zip(probabilities.tolist(), is_true, strict=True))
        measures = {
            "is_correct": [true[max(range(len(p)), key=p.__getitem__)] for p, true in rows],
            # A label that was not known had probability zero.
            "brier": [sum((a - b) ** 2 for a, b in zip(p, true, strict=True)) + 1.0 - sum(true) for p, true in rows],
            "negative_log_density": list(negative_log_density),
            **self.baseline.measures(labels),
        }
        flat = probabilities.ravel().tolist()
        calibration = self.calibration.add(flat, [value for true in is_true for value in true])
        return ClassScore(self.metrics.add(measures), self.baseline.add(labels), calibration)

    def learned(self, part: PredictedLabels) -> "ClassScore":
        """After rows that were learned."""
        if part.probabilities is None or not self.baseline.num_rows:
            return self.seen(part.labels)
        return self.add(
            part.labels,
            classes=part.classes,
            probabilities=part.probabilities,
            negative_log_density=[
                label_loss(label, dict(zip(part.classes, each, strict=True)), part.num_seen)
                for label, each in zip(part.labels, part.probabilities.tolist(), strict=True)
            ],
        )

    def seen(self, labels: Sequence[Hashable]) -> "ClassScore":
        """Take note of labels that nothing predicted."""
        return replace(self, baseline=self.baseline.add(labels))
