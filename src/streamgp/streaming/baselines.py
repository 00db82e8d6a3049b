"""Predictions that look at no input, for comparison: the last value, the mean so far, the most frequent class."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import final

__all__ = ["ClassBaseline", "ValueBaseline"]


@final
@dataclass(frozen=True)
class ValueBaseline:
    """Values so far, one for each output; a frozen value.

    Attributes:
        num_rows: Number of rows.
        last: Values of the last row.
        mean: Means over all rows.
    """

    num_rows: int = 0
    last: tuple[float, ...] = ()
    mean: tuple[float, ...] = ()

    def add(self, values: Sequence[Sequence[float]]) -> "ValueBaseline":
        """After more rows, with a value for each output."""
        if not values:
            return self
        count = self.num_rows + len(values)
        before = [self.num_rows * each for each in self.mean] or [0.0] * len(values[0])
        mean = tuple((old + sum(new)) / count for old, new in zip(before, zip(*values, strict=True), strict=True))
        return ValueBaseline(count, tuple(values[-1]), mean)

    def measures(self, values: Sequence[Sequence[float]]) -> dict[str, list[float]]:
        """Return absolute and squared errors of both predictions, averaged over outputs."""
        return {
            "last_value_error": [_mean_distance(row, self.last) for row in values],
            "running_mean_error": [_mean_distance(row, self.mean) for row in values],
            "squared_last_value_error": [_mean_square(row, self.last) for row in values],
            "squared_running_mean_error": [_mean_square(row, self.mean) for row in values],
        }

    def follow(self, values: Sequence[Sequence[float]]) -> tuple["ValueBaseline", dict[str, list[float]]]:
        """Predict and add rows one after the other; returns the baseline after them, and its absolute errors."""
        baseline = self
        measures: dict[str, list[float]] = {}
        for row in values:
            for name, errors in baseline.measures([row]).items():
                measures.setdefault(name, []).extend(errors)
            baseline = baseline.add([row])
        return baseline, measures


def _mean_distance(row: Sequence[float], other: Sequence[float]) -> float:
    return sum([abs(a - b) for a, b in zip(row, other, strict=True)]) / len(row)


def _mean_square(row: Sequence[float], other: Sequence[float]) -> float:
    return sum([(a - b) ** 2 for a, b in zip(row, other, strict=True)]) / len(row)


@final
@dataclass(frozen=True)
class ClassBaseline:
    """Labels so far; a frozen value.

    Attributes:
        counts: How often each label came.
        last: The last label.
    """

    counts: tuple[tuple[Hashable, int], ...] = ()
    last: Hashable = None

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(count for _, count in self.counts)

    def add(self, labels: Sequence[Hashable]) -> "ClassBaseline":
        """After more rows."""
        if not len(labels):
            return self
        counts = dict(self.counts)
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
        return ClassBaseline(tuple(counts.items()), labels[-1])

    def measures(self, labels: Sequence[Hashable]) -> dict[str, list[float]]:
        """Whether the most frequent label, and the last one, are right."""
        frequent = max(self.counts, key=lambda each: each[1])[0]
        return {
            "is_most_frequent": [float(label == frequent) for label in labels],
            "is_last": [float(label == self.last) for label in labels],
        }
