"""Classification of streams, for scikit-learn."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, final

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from streamgp.errors import DTypeError, ValueRangeError
from streamgp.likelihoods import Bernoulli
from streamgp.processes import sent_by_value
from streamgp.streaming.estimator import (
    AbstractStreamingEstimator,
    BankFacts,
    EstimatorState,
    generator_of,
    refuse_options,
)
from streamgp.streaming.merging import merge_classes
from streamgp.streaming.one_vs_rest import OneVsRest, PredictedLabels, unseen_probability
from streamgp.streaming.scoring import ClassScore
from streamgp.streaming.settings import StreamSettings
from streamgp.streams.reading import Batch
from streamgp.training.labels import check_kinds, is_missing, plain_dates, to_array, to_labels

__all__ = ["StreamingGPClassifier"]

# Types of arrays that are labels whatever they hold, which scikit-learn takes longer to find out than a row to learn.
_LABEL_KINDS = "biuU"


@sent_by_value
@final
class StreamingGPClassifier(ClassifierMixin, AbstractStreamingEstimator[OneVsRest]):
    """Gaussian-process classification that learns from a stream in constant time and memory.

    Two classes or more, named by text, numbers or dates without a time zone (`classes_` holds dates to the
    microsecond); of more than two, each against all others, with probabilities normalized. Classes may come
    while the stream runs: the rows in the buffer are then learned anew, none of which was of the new class.
    `log_predictive_density` leaves a probability of 1 / (n + 1) after n rows for labels that never came.

    ```python
    import numpy as np

    X = np.random.default_rng(0).random((60, 2))
    model = sg.StreamingGPClassifier().partial_fit(X, np.where(X[:, 0] > 0.5, "fail", "pass"))
    model.predict_proba(X[:3])  # columns as in model.classes_
    ```

    Args:
        link: `"probit"`, whose probabilities have a closed form, or `"logit"`.
        kernel: GPyTorch kernel for standardized inputs; a scaled Matérn-5/2 with a lengthscale for each column by
            default. Parameters with `requires_grad=False` stay as they are.
        num_inducing: Number of inducing points for each class; `"auto"` for 100, and more where those leave more open
            than there is noise, or as a long stream goes on.
        max_inducing: For `"auto"`: the most points, which bound time and memory.
        warmup: Rows after which the units of inputs are frozen.
        refit: When hyperparameters are learned after the warm-up: `"auto"` (when the number of rows has doubled, but at
            least every 1000 rows; where a long stream does not change, each time the buffer is full of new rows),
            `"doubling"`, `"never"`, or every so many rows; see `refits_`.
        buffer_size: Latest rows that a refit sees one by one; older ones are summarized in a belief.
        half_life: `"auto"` learns with several half-lives side by side, and mixes them by how well they predict:
            nothing has to be known of how the stream moves. A number of rows after which half of what was known is
            lost; None to forget nothing.
        sites: How labels become Gaussian observations: `"variational"`, `"laplace"`, or a `streamgp.sites.SiteRule`
            with its tolerance and most iterations.
        drift_detector: A detector of `river.drift`, or any object with `update(value)` and `drift_detected`; copied. It
            is shown 1 for each row that was predicted wrongly before it was learned, and 0 for the others.
        on_drift: What to do when errors have grown: `"rewarm"` begins again with a warm-up, `"reset"` keeps units and
            hyperparameters and forgets the rows.
        random_state: Seed, generator or None: for the order of rows in `fit`, and for training.

    Attributes:
        state_: All that was learned, a frozen value; replaced when a step has succeeded.
        n_features_in_: Number of input columns.
        feature_names_in_: Names of the columns, if the inputs had any.
    """

    def __init__(
        self,
        *,
        link: Any = "probit",
        kernel: Any = None,
        num_inducing: Any = "auto",
        max_inducing: Any = 256,
        warmup: Any = 200,
        refit: Any = "auto",
        buffer_size: Any = 4000,
        half_life: Any = "auto",
        sites: Any = "variational",
        drift_detector: Any = None,
        on_drift: Any = "rewarm",
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            num_inducing=num_inducing,
            max_inducing=max_inducing,
            warmup=warmup,
            refit=refit,
            buffer_size=buffer_size,
            half_life=half_life,
            sites=sites,
            drift_detector=drift_detector,
            on_drift=on_drift,
            random_state=random_state,
        )
        self.link = link

    @property
    def classes_(self) -> np.ndarray:
        """Labels so far, sorted: the columns of `predict_proba`."""
        return np.unique(to_array(self._learner.classes))

    def fit(self, X: Any, y: Any, **options: Any) -> "StreamingGPClassifier":
        """Forget everything, and learn from a data set whose order means nothing.

        Hyperparameters are learned on a random part of as many rows as `warmup` or `buffer_size` says, whichever is
        larger; the others are absorbed in blocks, with refits by policy, where `"auto"` means each time the number of
        rows has doubled. `partial_fit` goes on from there.

        Args:
            X: Inputs `(n, d)`.
            y: Labels `(n,)`.
            options: None: weights of rows are refused.
        """
        refuse_options(options)
        with self._all_or_nothing():
            self._fit_rows(self._read(X, y, reset=True))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, **options: Any) -> "StreamingGPClassifier":
        """Learn the next rows of a stream, in their order.

        A row that is refused changes nothing. Options that are changed after the first rows count from the next `fit`.

        Args:
            X: Inputs `(n, d)`.
            y: Labels `(n,)`.
            classes: Labels that are known to come. Others may come later all the same.
            options: None: weights of rows are refused.
        """
        refuse_options(options)
        with self._all_or_nothing():
            batch = self._read(X, y, reset=not self._is_started)
            state = self._state_so_far()
            if classes is not None and not _are_known(classes, state.learner.classes):
                labels = _read_classes(classes)
                check_kinds([*state.learner.classes, *labels, *to_labels(batch.targets[:1])])
                state = replace(state, learner=state.learner.with_classes(labels))
            self._learn_rows(state, batch)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable label of each input `(n, d)`."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(-1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities `(n, k)` of the labels in `classes_`, for inputs `(n, d)`.

        They add up to one but for a lone label, which leaves some for others that may come.
        """
        inputs = self._read_inputs(X)
        return self._sorted(self._learner.predict(inputs)).numpy()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of these probabilities."""
        return np.log(self.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of inputs `(n, d)` whose labels `(n,)` are predicted."""
        return super().score(X, plain_dates(np.asarray(y)), sample_weight)

    def sample(self, X: Any, num_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw labels for all inputs together: functions from the belief, and labels given their probabilities.

        Args:
            X: Inputs `(n, d)`; costs O(n³).
            num_samples: Number of draws.
            random_state: Seed, generator, or None for NumPy's own.

        Returns:
            Labels `(num_samples, n)`.
        """
        inputs, generator = self._read_inputs(X), generator_of(random_state)
        probabilities = self._sorted(self._learner.sample(inputs, num_samples, generator=generator))
        draws = torch.multinomial(probabilities.flatten(0, 1), 1, generator=generator)
        return self.classes_[draws.reshape(probabilities.shape[:2]).numpy()]

    def log_predictive_density(self, X: Any, y: Any) -> np.ndarray:
        """Log probability of each label `(n,)` given its inputs `(n, d)`, with some left for labels never seen."""
        check_is_fitted(self, "state_")
        batch, learner = self._read(X, y, reset=False), self._learner
        is_label = batch.targets[:, None] == self.classes_[None, :]
        each = self._sorted(learner.predict(batch.inputs)).numpy()
        known = each.sum(-1)
        unseen = np.array([unseen_probability(float(total), learner.num_seen) for total in known])
        return np.log(np.where(is_label.any(-1), (1.0 - unseen) / known * (each * is_label).sum(-1), unseen))

    @property
    def _facts(self) -> BankFacts:
        learner = self._learner.learner
        assert learner is not None
        assert learner.model is not None
        return BankFacts(learner.model)

    def _read(self, X: Any, y: Any, *, reset: bool) -> Batch:
        try:
            batch = self._read_rows(X, y, reset=reset, is_numeric=False)
        except DTypeError as error:
            if any(is_missing(label) for label in np.asarray(y, dtype=object).flat):
                raise ValueRangeError(
                    "Labels must not be missing, but one is. Leave out rows without a label."
                ) from error
            raise
        if batch.targets.dtype == object:  # which may hold several kinds
            check_kinds(batch.targets.tolist())
        batch = batch._replace(targets=plain_dates(batch.targets))
        if batch.targets.dtype.kind not in _LABEL_KINDS:
            try:
                check_classification_targets(batch.targets)
            except ValueError as error:
                raise ValueRangeError(str(error)) from error
            except TypeError as error:
                raise DTypeError(str(error)) from error
        if self._is_started and not reset:
            check_kinds([*self.state_.learner.classes, *to_labels(batch.targets[:1])])
        return batch

    def _sorted(self, probabilities: torch.Tensor) -> torch.Tensor:
        """Columns in the order of `classes_`."""
        order = _order(self._learner.classes)
        return probabilities if order is None else probabilities[..., order]

    @staticmethod
    def _merged(learners: Sequence[OneVsRest], base: OneVsRest | None) -> OneVsRest:
        return merge_classes(learners, base)

    def _likelihood(self) -> Any:
        return Bernoulli(self.link)

    def _start(self, settings: StreamSettings) -> OneVsRest:
        return OneVsRest(settings)

    def _learned_unordered(self, settings: StreamSettings, batch: Batch) -> OneVsRest:
        learner, _ = OneVsRest.from_rows(settings, batch.inputs, to_labels(batch.targets))
        return learner

    def _learned(self, state: EstimatorState[OneVsRest], batch: Batch) -> EstimatorState[OneVsRest]:
        score = state.score if isinstance(state.score, ClassScore) else self._no_score()

        def add(part: PredictedLabels) -> None:
            nonlocal score
            score = score.learned(part)

        learner, _ = state.learner.learn(batch.inputs, to_labels(batch.targets), on_predicted=add)
        return EstimatorState(learner, state.watch, score)

    def _no_score(self) -> ClassScore:
        return ClassScore()

    def _errors(self, learner: OneVsRest, batch: Batch) -> list[float]:
        """One for each row that is predicted wrongly, zero for the others."""
        best = learner.predict(batch.inputs).argmax(-1).tolist()
        labels = to_labels(batch.targets)
        return [float(learner.classes[index] != label) for index, label in zip(best, labels, strict=True)]


@lru_cache(maxsize=64)
def _order(classes: tuple[Hashable, ...]) -> list[int] | None:
    """Which columns come in the order of sorted labels; None if they are sorted. Kept, as every row asks for it."""
    order = np.argsort(to_array(classes)).tolist()
    return None if order == list(range(len(order))) else order


def _are_known(classes: Any, known: tuple[Hashable, ...]) -> bool:
    """Whether a plain list of classes is that which is known, as it is from the second call on."""
    labels = classes.tolist() if isinstance(classes, np.ndarray) else classes
    return (
        isinstance(labels, list | tuple)
        and all(isinstance(each, Hashable) for each in labels)
        and tuple(labels) == known
    )


def _read_classes(classes: Any) -> list[Any]:
    """Classes that are known to come."""
    try:
        labels = to_labels(column_or_1d(classes))
    except ValueError as error:
        raise ValueRangeError(f"classes must be a list or an array of labels, but is {classes!r}.") from error
    if any(label != label for label in labels):
        raise ValueRangeError(f"classes must be labels, but holds NaN: {classes!r}. Leave it out.")
    return labels
