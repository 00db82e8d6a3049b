"""Classification of a stream, as an estimator of river."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pandas as pd
from river import base

from streamgp.errors import ArgumentTypeError, ValueRangeError
from streamgp.integrations.river.estimator import TARGET, AbstractRiverEstimator, read_block
from streamgp.processes import sent_by_value
from streamgp.streams.model import ClassPrediction
from streamgp.streams.targets import read_label

__all__ = ["StreamingGPClassifier"]


@sent_by_value
@final
@dataclass(eq=False, repr=False)
class StreamingGPClassifier(AbstractRiverEstimator, base.MiniBatchClassifier):
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
        link: `"probit"` or `"logit"`.
        kernel: As for `streamgp.StreamingGPClassifier`, and so are the others.
        num_inducing: See there.
        max_inducing: See there.
        warmup: Rows during which a new feature becomes an input; see there.
        refit: See there.
        buffer_size: See there.
        half_life: See there.
        drift_detector: See there.
        on_drift: See there.
    """

    link: str = field(default="probit", kw_only=True)

    def __post_init__(self) -> None:
        """Begin with a stream that has seen nothing."""
        self._begin(TARGET, "classes", link=self.link)

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Hashable, Any], y: Hashable) -> None:
        """Learn one row."""
        self._stream.learn({**x, TARGET: _label(y)})

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn rows in their order; a block of them takes much less time than one after the other."""
        rows = read_block(X, y)
        self._stream.learn([{**row, TARGET: _label(row[TARGET])} for row in rows])

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Any, float]:
        """Return probabilities of the labels so far, which add up to one; none before the first row was learned."""
        if kwargs:
            raise ArgumentTypeError(
                f"predict_proba_one takes a row and nothing else, but got {sorted(kwargs)} as well."
            )
        if not self._is_started():
            return {}
        return dict(zip(self._stream.classes_, self._probabilities(x)[0].tolist(), strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return probabilities of the labels so far, one column for each."""
        rows = read_block(X)
        each = self._probabilities(rows) if self._is_started() else np.zeros((len(rows), 0))
        return pd.DataFrame(each, columns=list(self._stream.classes_), index=X.index)

    def _probabilities(self, rows: Any) -> np.ndarray:
        prediction = self._stream.predict(rows)
        assert isinstance(prediction, ClassPrediction)
        each = prediction.probabilities
        # river wants a distribution over the labels so far, of a lone one, too.
        return np.ones((len(each), 1)) if each.shape[-1] == 1 else each


def _label(y: Any) -> Any:
    """Return a label as Python's own number, text or date; other objects that can be told apart stay as they are."""
    if not isinstance(y, Hashable):
        raise ArgumentTypeError(
            f"A label must be something that dictionaries take for a key, but is {y!r}. Convert it, for instance with "
            "str or tuple."
        )
    label = read_label(y)
    if label is None:
        raise ValueRangeError(f"A label must not be missing, but is {y!r}. Leave out rows without a label.")
    return label
