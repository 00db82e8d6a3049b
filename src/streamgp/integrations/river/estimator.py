"""What the estimators of river share: their options, and a stream that is replaced when a step has succeeded."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from gpytorch.kernels import Kernel

from streamgp.integrations.river.named_stream import Learner, NamedStream
from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites import SiteRule
from streamgp.streaming import StreamSettings
from streamgp.streaming.drift import DriftDetector, DriftWatch
from streamgp.streaming.report import ScoreReport
from streamgp.streaming.scoring import ClassScore, ValueScore
from streamgp.streams.locks import lock_of

__all__ = ["AbstractRiverEstimator"]


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractRiverEstimator(ABC, Generic[Learner]):
    """An estimator around a frozen stream. River reads its options, and passes them on to copies, by name."""

    kernel: Kernel | None = None
    num_inducing: int | str = "auto"
    max_inducing: int = 256
    warmup: int = 200
    refit: str | int = "auto"
    buffer_size: int = 4000
    half_life: float | str | None = "auto"
    drift_detector: DriftDetector | None = None
    on_drift: str = "rewarm"
    seed: int = 0

    def __post_init__(self) -> None:
        """Begin with a learner that has seen nothing."""
        detector = self.drift_detector
        watch = None if detector is None else DriftWatch.start(detector, self.on_drift)
        self._stream: NamedStream[Learner] = NamedStream(*self._start(), watch)

    @abstractmethod
    def _start(self) -> tuple[Learner, ValueScore | ClassScore]:
        """A learner that has seen nothing, and the score of its predictions."""

    @property
    def num_ignored(self) -> int:
        """Values so far of features that were not there during the warm-up."""
        return self._stream.features.num_ignored

    def score_report(self) -> ScoreReport:
        """How good rows were predicted before they were learned, beside naive baselines; means over targets."""
        return ScoreReport(self._stream.score)

    def _settings(self, likelihood: str | AbstractLikelihood, sites: SiteRule | None = None) -> StreamSettings:
        """Options of the stream, with the usual sites if none are given."""
        given: dict[str, Any] = {} if sites is None else {"sites": sites}
        return StreamSettings(
            likelihood,
            kernel=self.kernel,
            num_inducing=self.num_inducing,
            max_inducing=self.max_inducing,
            warmup=self.warmup,
            refit=self.refit,
            buffer_size=self.buffer_size,
            half_life=self.half_life,
            seed=self.seed,
            **given,
        )

    def _learn(self, names: Sequence[Hashable], values: np.ndarray, y: Any, weights: np.ndarray | None = None) -> None:
        if len(y):
            with lock_of(self):
                self._stream = self._stream.learn(names, values, y, weights)

    def _unit_test_skips(self) -> set[str]:
        """Name checks of river that do not apply: rows of a block have the same age, and judge the experts together."""
        return {"check_learn_many_matches_learn_one"}
