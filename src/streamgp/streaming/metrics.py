"""Running metrics of a stream: sums over its rows, and a history of bounded length for pictures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from streamgp.errors import NumericalError, OptionError

__all__ = ["CLASS_MEASURES", "VALUE_MEASURES", "MetricsPoint", "StreamMetrics", "coverage_warning"]

# What is measured of each row: for values and counts, and for classes. The last two are those of baselines.
VALUE_MEASURES = (
    "squared_error",
    "absolute_error",
    "negative_log_density",
    "is_covered",
    "last_value_error",
    "running_mean_error",
    "error",
    "squared_last_value_error",
    "squared_running_mean_error",
)
CLASS_MEASURES = ("is_correct", "brier", "negative_log_density", "is_most_frequent", "is_last")

# Twice as fine as the eye can tell apart in a picture.
_MOST_POINTS = 512
# With fewer rows nothing is said of coverage.
_ENOUGH_ROWS = 50


class MetricsPoint(NamedTuple):
    """The sums after some row.

    Attributes:
        num_rows: Number of rows until then.
        totals: Sum of each measure over them.
    """

    num_rows: int
    totals: tuple[float, ...]


@final
@dataclass(frozen=True)
class StreamMetrics:
    """Sums of measures over the rows of a stream, each predicted before it was learned; a frozen value.

    Attributes:
        measures: Names of what is summed, `VALUE_MEASURES` or `CLASS_MEASURES`.
        num_rows: Number of rows.
        totals: Sum of each measure.
        history: The sums after every `spacing` rows, at most 512 of them: when there are more, every second one is
            dropped and the spacing doubles.
        spacing: Number of rows between two points of the history.
    """

    measures: tuple[str, ...]
    num_rows: int = 0
    totals: tuple[float, ...] = ()
    history: tuple[MetricsPoint, ...] = ()
    spacing: int = 1

    def add(self, values: Mapping[str, Sequence[float]]) -> "StreamMetrics":
        """Add rows.

        Args:
            values: For each measure, one number for each row, in their order.
        """
        if values.keys() != set(self.measures):
            raise OptionError(f"values must have the names {sorted(self.measures)}, but has {sorted(values)}.")
        metrics = self
        for row in zip(*(values[name] for name in self.measures), strict=True):
            metrics = metrics._add_row(row)
        return metrics

    def mean(self, measure: str) -> float:
        """Mean of a measure over all rows; NaN before the first."""
        return self.totals[self.measures.index(measure)] / self.num_rows if self.num_rows else math.nan

    def summary(self) -> dict[str, float]:
        """The metrics by the names that people use: RMSE, MAE, accuracy, Brier score, NLPD, coverage, baselines."""
        density = self.mean("negative_log_density")
        if "is_correct" in self.measures:
            return {
                "accuracy": self.mean("is_correct"),
                "Brier": self.mean("brier"),
                "log loss": density,
                "accuracy of the most frequent class": self.mean("is_most_frequent"),
                "accuracy of the last class": self.mean("is_last"),
            }
        return {
            "RMSE": math.sqrt(self.mean("squared_error")),
            "MAE": self.mean("absolute_error"),
            "NLPD": density,
            "coverage of 90 %": self.mean("is_covered"),
            "MAE of the last value": self.mean("last_value_error"),
            "MAE of the running mean": self.mean("running_mean_error"),
            "RMSE of the last value": math.sqrt(self.mean("squared_last_value_error")),
            "RMSE of the running mean": math.sqrt(self.mean("squared_running_mean_error")),
            "bias": self.mean("error"),
        }

    def _add_row(self, row: tuple[float, ...]) -> "StreamMetrics":
        if not all(map(math.isfinite, row)):
            raise NumericalError(
                f"The prediction of row {self.num_rows + 1} is not finite: "
                f"{', '.join(f'{name} = {value:g}' for name, value in zip(self.measures, row, strict=True))}. "
                "Look for extreme values in the rows before it."
            )
        totals = tuple(map(sum, zip(self.totals or (0.0,) * len(row), row, strict=True)))
        num_rows, history, spacing = self.num_rows + 1, self.history, self.spacing
        if num_rows % spacing == 0:
            history = (*history, MetricsPoint(num_rows, totals))
        if len(history) > _MOST_POINTS:
            history, spacing = history[1::2], 2 * spacing
        return StreamMetrics(self.measures, num_rows, totals, history, spacing)


def coverage_warning(metrics: StreamMetrics, *, is_discrete: bool = False) -> str | None:
    """A sentence where 90 % intervals hold far more or far fewer targets than that; None if they do not.

    Far is five percent beyond two standard errors. Intervals of counts must hold more.
    """
    if "is_covered" not in metrics.measures or metrics.num_rows < _ENOUGH_ROWS:
        return None
    share = metrics.mean("is_covered")
    if abs(share - 0.9) <= 0.05 + 2.0 * math.sqrt(0.09 / metrics.num_rows) or (is_discrete and share > 0.9):
        return None
    advice = "wider than needed" if share > 0.9 else "too narrow, so do not rely on them"
    return f"90 % intervals held {share:.0%} of {metrics.num_rows} targets: they are {advice}."
