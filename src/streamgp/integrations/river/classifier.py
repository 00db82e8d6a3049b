"""Classification of a stream, as an estimator of river."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pandas as pd
from river import base

from streamgp.errors import ArgumentTypeError
from streamgp.integrations.river.estimator import AbstractRiverEstimator
from streamgp.integrations.river.features import read_block, read_row
from streamgp.integrations.river.labels import read_label, read_labels
from streamgp.likelihoods import Bernoulli
from streamgp.processes import sent_by_value
from streamgp.sites import SiteRule
from streamgp.streaming import OneVsRest
from streamgp.streaming.scoring import ClassScore

__all__ = ["StreamingGPClassifier"]


@sent_by_value
@final
@dataclass(eq=False, repr=False)
class StreamingGPClassifier(AbstractRiverEstimator[OneVsRest], base.MiniBatchClassifier):
    """Gaussian-process classification that learns from a stream in constant time and memory.

    Labels are anything that dictionaries take for a key. Timestamps, which must have no time zone and be no finer than
    a microsecond, become `datetime.datetime`, which is equal to them.

    ```python
    from river import datasets

    from streamgp.integrations.river import StreamingGPClassifier

    model = StreamingGPClassifier(num_inducing=10, warmup=20)
    for x, y in datasets.Phishing().take(40):
        probabilities = model.predict_proba_one(x)
        model.learn_one(x, y)
    ```

    Args:
        link: `"probit"`, whose probabilities have a closed form, or `"logit"`.
        kernel: GPyTorch kernel for standardized inputs; a scaled Matérn-5/2 with a lengthscale for each by default.
        num_inducing: Number of inducing points for each class; `"auto"` for 100, and more as the stream goes on, one
            for every 20 rows, where it needs them.
        max_inducing: For `"auto"`: the most points, which bound time and memory.
        warmup: Rows after which the features and their units are frozen.
        refit: When hyperparameters are learned after that: `"auto"`, `"doubling"`, `"never"`, or every so many rows.
        buffer_size: Latest rows that a refit sees one by one.
        half_life: `"auto"` mixes several half-lives by how well they predict; a number of rows, or None to forget
            nothing.
        sites: How observations that are not Gaussian become Gaussian ones: a `streamgp.sites.SiteRule` with its
            tolerance and most iterations; None for the usual one.
        drift_detector: A detector of `river.drift`, copied; None for none. It is shown the error of each row before it
            is learned: in predictive standard deviations for real targets, 0 or 1 for labels.
        on_drift: What to do when errors have grown: `"rewarm"` begins again with a warm-up, `"reset"` keeps units and
            hyperparameters and forgets the rows.
        seed: Seed of the choices of training.
    """

    link: str = field(default="probit", kw_only=True)
    sites: SiteRule | None = field(default=None, kw_only=True)

    def _start(self) -> tuple[OneVsRest, ClassScore]:
        return OneVsRest(self._settings(Bernoulli(self.link), self.sites)), ClassScore()

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Hashable, Any], y: Hashable) -> None:
        """Learn one row."""
        self._learn(list(x), read_row(x), [read_label(y)])

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn rows in their order; a block of them takes much less time than one after the other."""
        values = read_block(X)
        self._learn(list(X.columns), values, read_labels(y))

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Any, float]:
        """Probabilities of the labels so far, which add up to one; none before the first row was learned."""
        if kwargs:
            raise ArgumentTypeError(
                f"predict_proba_one takes a row and nothing else, but got {sorted(kwargs)} as well."
            )
        return dict(zip(self._stream.learner.classes, self._predict(list(x), read_row(x))[0].tolist(), strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Probabilities of the labels so far, one column for each."""
        values = read_block(X)
        probabilities = self._predict(list(X.columns), values)
        return pd.DataFrame(probabilities, columns=list(self._stream.learner.classes), index=X.index)

    def _predict(self, names: Sequence[Hashable], values: np.ndarray) -> np.ndarray:
        probabilities = self._stream.predict(names, values)
        if probabilities is None:
            return np.zeros((len(values), 0))
        # river wants a distribution over the labels so far, of a lone one, too.
        return np.ones((len(values), 1)) if probabilities.shape[-1] == 1 else probabilities.numpy()
