"""Base of the estimators of river: their options, and a stream whose features have names."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from gpytorch.kernels import Kernel

from streamgp.errors import ArgumentTypeError, ShapeError
from streamgp.streams.drift import DriftDetector
from streamgp.streams.report import ScoreReport
from streamgp.streams.stream import Stream

__all__ = ["TARGET", "AbstractRiverEstimator", "read_block"]

# Name of the target among the features of a row.
TARGET = "__target__"


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractRiverEstimator(ABC):
    """An estimator around a stream. River reads its options, and passes them on to copies, by name."""

    kernel: Kernel | str | None = None
    num_inducing: int | str = "auto"
    max_inducing: int = 256
    warmup: int = 200
    refit: str | int = "auto"
    buffer_size: int = 4000
    half_life: float | str | None = "auto"
    drift_detector: DriftDetector | str | None = None
    on_drift: str = "rewarm"

    @abstractmethod
    def __post_init__(self) -> None:
        """Begin with a stream that has seen nothing."""

    @property
    def num_ignored(self) -> int:
        """Number of values of features that were not there during the warm-up."""
        return self._stream.num_ignored_

    def score_report(self) -> ScoreReport:
        """Return how well rows were predicted before they were learned, beside baselines; means over targets."""
        return self._stream.score_report()

    def _begin(self, target: Any, likelihood: Any, **options: Any) -> None:
        """Begin a stream that has seen nothing, all of whose features are numbers."""
        self._stream = Stream(
            target,
            likelihood=likelihood,
            kinds="number",
            first_rows=self.warmup,
            kernel=self.kernel,
            num_inducing=self.num_inducing,
            max_inducing=self.max_inducing,
            warmup=self.warmup,
            refit=self.refit,
            buffer_size=self.buffer_size,
            half_life=self.half_life,
            drift_detector=self.drift_detector,
            on_drift=self.on_drift,
            **options,
        )

    def _is_started(self) -> bool:
        return self._stream.num_seen_ > 0


def read_block(X: Any, y: Any = None) -> list[Mapping[Hashable, Any]]:
    """Return the rows of a DataFrame as mappings, with targets if there are any."""
    if not isinstance(X, pd.DataFrame):
        raise ArgumentTypeError(
            f"X must be a pandas.DataFrame, whose columns name the features, but is a {type(X).__name__}. Make one "
            "with pandas.DataFrame(X, columns=names)."
        )
    if y is None:
        return [dict(zip(X.columns, row, strict=True)) for row in X.itertuples(index=False, name=None)]
    targets: Sequence[Any] = y.tolist() if isinstance(y, np.ndarray) else list(y)
    if np.ndim(y) > 1 or len(targets) != len(X):
        raise ShapeError(
            f"y must be a pandas.Series with one target for each of the {len(X)} rows of X, but has shape "
            f"{np.shape(y)}."
        )
    return [{**row, TARGET: target} for row, target in zip(read_block(X), targets, strict=True)]
