"""Several classes in a stream, each against all others."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.errors import ShapeError, UnsupportedError
from streamgp.processes import sent_by_value
from streamgp.streaming.learner import Array, LearnInfo, Predicted, StreamLearner
from streamgp.streaming.prediction import StreamPrediction
from streamgp.streaming.refitting import RefitReport, relearn
from streamgp.streaming.rows import Rows, read_inputs
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.sharpness import Sharpness
from streamgp.streaming.unordered import learn_unordered

__all__ = ["OneVsRest", "PredictedLabels", "unseen_probability"]

# What probabilities of known labels leave by rounding.
_ROUNDING = 1e-9


def unseen_probability(known: float, num_seen: int) -> float:
    """The probability of a label that never came, by which those of known labels are lessened.

    Args:
        known: Sum of the probabilities of known labels. What a lone one leaves is for the others; where they leave
            nothing, a label that never came has the probability of one that came once, by the rule of succession.
        num_seen: Number of rows so far.
    """
    left = 1.0 - known
    return left if left > _ROUNDING else 1.0 / (num_seen + 1.0)


class PredictedLabels(NamedTuple):
    """Rows that were learned together, and what was predicted of them before.

    Attributes:
        labels: The labels that came.
        classes: Those that were known.
        probabilities: What was predicted for these; None if nothing was known before.
        num_seen: Number of rows before the first of them.
    """

    labels: Sequence[Hashable]
    classes: Sequence[Hashable]
    probabilities: Float[np.ndarray, "n k"] | None
    num_seen: int


@sent_by_value
@final
@dataclass(frozen=True, eq=False)
class OneVsRest:
    """What is known of a stream of labels: a frozen value of bounded size.

    Two classes are one question, whether a row is of the second; of more, each is one against all others, with
    probabilities normalized. All questions are outputs of one learner, with one kernel.

    A class may come at any time. The learner then learns the rows in its buffer anew, none of which was of it.

    Attributes:
        settings: Options; the likelihood must be of two classes.
        classes: Labels, in the order in which they came.
        learner: What is known.
        sharpness: How sure predictions are to be, with `half_life="auto"`.
    """

    settings: StreamSettings
    classes: tuple[Hashable, ...] = ()
    learner: StreamLearner | None = None
    sharpness: Sharpness = field(default_factory=Sharpness)

    @classmethod
    def from_classes(cls, settings: StreamSettings, classes: Sequence[Hashable]) -> "OneVsRest":
        """Start with classes that are known, before the first row."""
        return cls(settings, tuple(classes), _learner(settings, len(classes)))

    @classmethod
    def from_rows(cls, settings: StreamSettings, X: Array, y: Sequence[Hashable]) -> tuple["OneVsRest", LearnInfo]:
        """Learn from a data set whose order means nothing, as `learn_unordered` does."""
        empty = cls.from_classes(settings, tuple(dict.fromkeys(y)))
        assert empty.learner is not None
        learner, info = learn_unordered(empty.learner, read_inputs(X, num_dims=None), empty._targets(y))
        is_learned = settings.half_life == "auto"
        sharpness = Sharpness.after_fit(empty._columns(y)) if is_learned else empty.sharpness
        return replace(empty, learner=learner, sharpness=sharpness), info

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up is over."""
        return self.learner is not None and self.learner.is_warm

    @property
    def num_seen(self) -> int:
        """Number of rows so far."""
        return 0 if self.learner is None else self.learner.num_seen

    @property
    def num_dims(self) -> int | None:
        """Number of input columns; None before the first row."""
        return None if self.learner is None else self.learner.num_dims

    @property
    def num_outside(self) -> int:
        """Inputs far outside the range of the warm-up so far."""
        return 0 if self.learner is None else self.learner.num_outside

    @property
    def refits(self) -> tuple[RefitReport, ...]:
        """The latest reports."""
        return () if self.learner is None else self.learner.refits

    def predict(self, X: Array) -> Float[Tensor, "n k"]:
        """Probabilities of the classes at inputs `(n, d)`; there must have been a row to learn from.

        That of a lone class leaves some for one that is to come.
        """
        learner, inputs = self._started(), read_inputs(X, num_dims=self.num_dims)
        return torch.from_numpy(self._made_sure(learner, inputs, self._probabilities(learner.predict(inputs))))

    def sample(self, X: Array, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "s n k"]:
        """Draw probabilities jointly for all inputs `(n, d)`, each class independent of the others."""
        learner = self._started()
        assert learner.model is not None
        inputs = read_inputs(X, num_dims=self.num_dims)
        latent, _, prediction = learner.model.sample_latent(inputs, num_samples, generator, latest=learner.latest)
        each = prediction.likelihood.conditional_mean(latent)
        if len(self.classes) <= 2:
            drawn = self._pair(each.squeeze(-2))
        else:
            each = each.clamp_min(torch.finfo(each.dtype).tiny)
            drawn = (each / each.sum(-2, keepdim=True)).mT
        mean = self._probabilities(prediction)
        if not self._is_sharpened(mean):
            return drawn
        # As much more or less sure as the prediction of all draws together.
        drawn = drawn * torch.from_numpy(self._made_sure(learner, inputs, mean) / np.maximum(mean, _ROUNDING))
        return drawn / drawn.sum(-1, keepdim=True)

    def learn(
        self, X: Array, y: Sequence[Hashable], *, on_predicted: Callable[[PredictedLabels], None] | None = None
    ) -> tuple["OneVsRest", LearnInfo]:
        """Learn from rows.

        Args:
            X: Inputs `(n, d)`.
            y: Labels, one for each row.
            on_predicted: Is shown, part by part, what was predicted of the rows before they were learned.

        Returns:
            The classes and what is known after these rows, and diagnostics.
        """
        inputs = read_inputs(X, num_dims=self.num_dims)
        if len(y) != len(inputs):
            raise ShapeError(f"y must have {len(inputs)} labels, one for each row of X, but has {len(y)}.")
        if not self.num_seen:
            # Nothing was predicted yet, so that the classes of all rows may be known at once.
            return self.with_classes(y)._learn_part(inputs, y, self.classes, on_predicted)
        first_rows = {label: index for index, label in reversed(list(enumerate(y))) if label not in self.classes}
        starts = sorted(first_rows.values())
        known = starts[0] if starts else len(y)
        state, info = self._learn_part(inputs[:known], y[:known], self.classes, on_predicted)
        refits = info.refits
        for start, stop in pairwise([*starts, len(y)]):
            wider = state.with_classes(y[start : start + 1])
            state, info = wider._learn_part(inputs[start:stop], y[start:stop], state.classes, on_predicted)
            refits += info.refits
        return state, LearnInfo(state.num_outside - self.num_outside, refits)

    def with_classes(self, labels: Sequence[Hashable]) -> "OneVsRest":
        """Make room for classes that are to come; those that are known stay as they are."""
        new = tuple(dict.fromkeys(label for label in labels if label not in self.classes))
        if not new:
            return self
        classes = (*self.classes, *new)
        if not self.num_seen:
            return self.from_classes(self.settings, classes)
        learner = self._started()
        if len(classes) == 2:
            return replace(self, classes=classes)  # of the second, no row came so far
        return replace(self, classes=classes, learner=_with_questions(learner, len(self.classes), len(classes)))

    def reset(self) -> "OneVsRest":
        """Forget what the rows said, and keep classes, units, hyperparameters and inducing points."""
        return self if self.learner is None else replace(self, learner=self.learner.reset(), sharpness=Sharpness())

    def rewarm(self) -> "OneVsRest":
        """Begin again with a warm-up; the classes and the count of rows stay."""
        return self if self.learner is None else replace(self, learner=self.learner.rewarm(), sharpness=Sharpness())

    def _started(self) -> StreamLearner:
        if self.learner is None:
            raise UnsupportedError("There is nothing to predict from before the first row. Call learn first.")
        return self.learner

    def _pair(self, second: Float[Tensor, "*s n"]) -> Float[Tensor, "*s n k"]:
        """Probabilities of one or two classes from that of the second."""
        return torch.stack([1.0 - second, second][: len(self.classes)], -1)

    def _probabilities(self, prediction: StreamPrediction) -> Float[np.ndarray, "n k"]:
        """Of the classes, before they are sharpened."""
        if len(self.classes) <= 2:
            each = np.empty((prediction.means.shape[-1], 2))
            each[:, 1] = prediction.means[0]
            np.subtract(1.0, each[:, 1], out=each[:, 0])
            return each[:, : len(self.classes)]
        weights = prediction.weights
        return np.asarray(np.add.reduce(weights * prediction.class_probabilities).T)

    def _is_sharpened(self, probabilities: Float[np.ndarray, "n k"]) -> bool:
        """Whether it is learned how sure predictions are to be; a lone class leaves some for others, as it is."""
        return self.settings.half_life == "auto" and probabilities.shape[-1] > 1

    def _sharpened(self, probabilities: Float[np.ndarray, "n k"], sharpness: Sharpness) -> Float[np.ndarray, "n k"]:
        return sharpness.applied(probabilities) if self._is_sharpened(probabilities) else probabilities

    def _made_sure(
        self, learner: StreamLearner, X: Float[np.ndarray, "n d"], plain: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "n k"]:
        """As sure as predictions are to be, by the last label where the next row is expected."""
        if not self._is_sharpened(plain):
            return plain
        latest, model = learner.latest, learner.model
        is_next = None if latest is None or model is None else model.is_near(X, latest)
        return self.sharpness.applied(plain, is_next)

    def _learn_part(
        self,
        X: Float[np.ndarray, "n d"],
        y: Sequence[Hashable],
        before: Sequence[Hashable],
        on_predicted: Callable[[PredictedLabels], None] | None,
    ) -> tuple["OneVsRest", LearnInfo]:
        """Learn from rows of classes that have room; those of `before` had come when the first row was predicted."""
        if not len(y):
            return self, LearnInfo()
        start, sharpness = 0, self.sharpness
        tell = on_predicted or (lambda part: None)

        def show(part: Predicted) -> None:
            nonlocal start, sharpness
            labels, num_seen = y[start : start + part.rows.num_rows], self.num_seen + start
            start += len(labels)
            if part.prediction is None:
                tell(PredictedLabels(labels, self.classes, None, num_seen))
                sharpness = self._sharper(sharpness, labels, None)
                return
            plain = self._probabilities(part.prediction)
            if num_seen == self.num_seen and len(before) < len(self.classes):
                # Nobody knew of the class of the first row.
                first = plain[:1, : len(before)]
                if len(before) > 1:
                    first = first / np.maximum(first.sum(-1, keepdims=True), np.finfo(first.dtype).tiny)
                tell(PredictedLabels(labels[:1], before, self._sharpened(first, sharpness), num_seen))
                sharpness = self._sharper(sharpness, labels[:1], None)
                labels, plain, num_seen = labels[1:], plain[1:], num_seen + 1
            if len(labels):
                tell(PredictedLabels(labels, self.classes, self._sharpened(plain, sharpness), num_seen))
                sharpness = self._sharper(sharpness, labels, plain)

        learner, info = self._started().learn(X, self._targets(y), on_predicted=show)
        return OneVsRest(self.settings, self.classes, learner, sharpness), info

    def _sharper(
        self, sharpness: Sharpness, labels: Sequence[Hashable], plain: Float[np.ndarray, "n k"] | None
    ) -> Sharpness:
        """After labels, and what was predicted of them if anything was."""
        if self.settings.half_life != "auto":
            return sharpness
        if plain is None or not self._is_sharpened(plain):
            return sharpness.counting(self._columns(labels))
        return sharpness.learned(plain, self._columns(labels))

    def _columns(self, y: Sequence[Hashable]) -> Int[np.ndarray, " n"]:
        """Which class each label is."""
        column = {label: index for index, label in enumerate(self.classes)}
        return np.array([column[label] for label in y], dtype=np.intp)

    def _targets(self, y: Sequence[Hashable]) -> Float[np.ndarray, "n c"]:
        """Answers to the questions."""
        answers = [1] if len(self.classes) <= 2 else range(len(self.classes))
        return (self._columns(y)[:, None] == np.array(answers)).astype(np.float64)


def _learner(settings: StreamSettings, num_classes: int) -> StreamLearner:
    return StreamLearner(settings, is_multiclass=num_classes > 2)


def _with_questions(learner: StreamLearner, num_before: int, num_classes: int) -> StreamLearner:
    """A learner of more classes than before, of which no row in its buffer was."""
    buffer, model = learner.buffer, learner.model
    wider = replace(learner, is_multiclass=True, anchor=None, halfway=None, past=None)
    if buffer is None or model is None:
        return replace(wider, model=None, num_since_start=0, next_refit=1)
    answers = buffer.targets
    if num_before <= 2:
        answers = np.concatenate([1.0 - answers, answers])[:num_before]
    nothing = np.zeros((num_classes - len(answers), buffer.num_rows))
    rows = Rows(buffer.inputs, np.concatenate([answers, nothing]), buffer.total_count)
    learned = relearn(
        rows,
        learner.settings,
        before=model,
        is_new=not learner.is_warm,
        is_searching=False,
        is_single_output=False,
        is_multiclass=True,
        num_unjudged=rows.num_rows,
        num_rows=learner.num_since_start,
    )
    return replace(wider, model=learned.model, buffer=rows)
