"""Classification of streams, for scikit-learn."""

from collections.abc import Hashable
from typing import Any, final

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from streamgp.checks import check_choice
from streamgp.errors import DTypeError, ShapeError, ValueRangeError
from streamgp.processes import sent_by_value
from streamgp.streams.estimator import AbstractStreamEstimator, read_output, refuse_options
from streamgp.streams.locks import lock_of
from streamgp.streams.model import ClassPrediction, StreamTicket
from streamgp.streams.options import StreamOptions
from streamgp.streams.parameters import read_options
from streamgp.streams.reading import Batch, read_batch, read_horizon
from streamgp.streams.score import unseen_probability
from streamgp.tables.labels import check_kinds, is_missing, plain_dates, to_array, to_labels

__all__ = ["StreamingGPClassifier"]

# Types of arrays that are labels whatever they hold, which scikit-learn takes longer to find out than a row to learn.
_LABEL_KINDS = "biuU"


@sent_by_value
@final
class StreamingGPClassifier(ClassifierMixin, AbstractStreamEstimator):
    """Gaussian-process classification that learns from a stream in constant time and memory.

    Two classes or more, named by text, numbers or dates without a time zone (`classes_` holds dates to the
    microsecond). Classes may come while the stream runs: the rows in the buffer are then learned anew, none of which
    was of the new class. `log_predictive_density` leaves a probability of 1 / (n + 1) after n rows for labels that
    never came.

    ```python
    import numpy as np

    X = np.random.default_rng(0).random((60, 2))
    model = sg.StreamingGPClassifier().partial_fit(X, np.where(X[:, 0] > 0.5, "fail", "pass"))
    model.predict_proba(X[:3])  # columns as in model.classes_
    ```

    Args:
        link: `"probit"` or `"logit"`.
        kernel: GPyTorch kernel for standardized inputs, or `"rbf"`, `"matern-1/2"`, `"matern-3/2"`, `"matern-5/2"`; a
            scaled Matérn-5/2 with a lengthscale for each column by default. Parameters with `requires_grad=False` stay
            as they are.
        num_inducing: Largest number of inducing points; `"auto"` for `max_inducing`.
        max_inducing: For `"auto"`: the most points, which bound time and memory.
        warmup: Rows after which a drift detector begins, and `refit="never"` and a number of rows count.
        refit: When hyperparameters are learned again: `"auto"` (when the number of rows has doubled, but at least every
            1000 rows, less often where nothing changes), `"background"` (the same, in a thread of its own, so that no
            row waits), `"doubling"`, `"never"` after the warm-up, or every so many rows; see `refits_`.
        buffer_size: Latest rows that a refit sees one by one; older ones are summarized in a belief.
        half_life: `"auto"` learns with several half-lives side by side, and mixes them by how well they predict:
            nothing has to be known of how the stream moves. A number of rows after which half of what was known is
            lost; None to forget nothing.
        drift_detector: A detector of `river.drift`, its name such as `"adwin"`, or any object with `update(value)` and
            `drift_detected`; copied. It is shown 1 for each row that was predicted wrongly before it was learned, and
            0 for the others.
        on_drift: What to do when errors have grown: `"rewarm"` begins again with a warm-up, `"reset"` keeps units and
            hyperparameters and forgets the rows.
        random_state: Seed, generator or None: for the order of rows in `fit`.

    Attributes:
        state_: All that was learned.
        n_features_in_: Number of input columns.
        feature_names_in_: Names of the columns, if the inputs had any.
    """

    _is_label = True

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
            drift_detector=drift_detector,
            on_drift=on_drift,
            random_state=random_state,
        )
        self.link = link

    @property
    def classes_(self) -> np.ndarray:
        """Labels so far, sorted: the columns of `predict_proba`."""
        return np.unique(to_array(self._model.classes))

    def fit(self, X: Any, y: Any, **options: Any) -> "StreamingGPClassifier":
        """Forget everything, and learn from a data set whose order means nothing; `partial_fit` goes on from there.

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
            model = self.state_ if self._is_started else self._new_model()
            if classes is not None and not _are_known(classes, model.classes):
                labels = _read_classes(classes)
                check_kinds([*model.classes, *labels, *batch.targets[:1]])
                model.with_classes(labels)
            self._learn_rows(model, batch)
        return self

    def predict(self, X: Any, *, horizon: Any = 1) -> np.ndarray:
        """Predict the most probable label of each input `(n, d)`, so many rows ahead."""
        probabilities = self.predict_proba(X, horizon=horizon)
        return self.classes_[probabilities.argmax(-1)]

    def predict_proba(self, X: Any, *, horizon: Any = 1, output: str = "array") -> Any:
        """Return probabilities of the labels in `classes_`; they add up to one but for a lone label.

        Args:
            X: Inputs `(n, d)`.
            horizon: How many rows ahead the rows are, 1 for the next one: a whole number, or one for each row.
            output: `"frame"` returns a table with the most probable label, and the index of `X`.

        Returns:
            Probabilities `(n, k)`.
        """
        is_frame, index = read_output(output, X)
        inputs = self._read_inputs(X)
        with lock_of(self):
            prediction = self._model.predict(inputs, horizon=read_horizon(horizon, len(inputs)))
        assert isinstance(prediction, ClassPrediction)
        order = self._order
        if is_frame:
            classes = tuple(prediction.classes[i] for i in order)
            return ClassPrediction(classes, prediction.probabilities[:, order], index).frame()
        return prediction.probabilities[:, order]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return logarithms of these probabilities."""
        return np.log(self.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of inputs `(n, d)` whose labels `(n,)` are predicted."""
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
        inputs = self._read_inputs(X)
        rng = np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))
        with lock_of(self):
            probabilities = self._model.sample(inputs, num_samples, rng)[..., self._order]
        below = np.cumsum(probabilities, axis=-1) < rng.random((*probabilities.shape[:2], 1))
        return self.classes_[np.minimum(below.sum(-1), probabilities.shape[-1] - 1)]

    def log_predictive_density(self, X: Any, y: Any) -> np.ndarray:
        """Return the log probability of each label `(n,)` given its inputs, with some left for labels never seen."""
        num_seen = self._model.num_seen
        batch = self._read(X, y, reset=False)
        with lock_of(self):
            prediction = self._model.predict(batch.inputs)
        assert isinstance(prediction, ClassPrediction)
        each = prediction.probabilities
        is_label = np.array([[label == known for known in prediction.classes] for label in batch.targets])
        known = each.sum(-1)
        unseen = np.array([unseen_probability(float(total), num_seen) for total in known])
        return np.log(np.where(is_label.any(-1), (1.0 - unseen) / known * (each * is_label).sum(-1), unseen))

    def learn(self, ticket: StreamTicket, y: Any) -> "StreamingGPClassifier":
        """Learn the labels of rows that were asked for, and judge the experts by what was said then.

        Args:
            ticket: What `expect` returned.
            y: Labels `(n,)`; None for one that will never come.
        """
        labels = [None if is_missing(label) else to_labels(np.array([label]))[0] for label in np.asarray(y).tolist()]
        if len(labels) != len(ticket.inputs):
            raise ShapeError(f"y must have {len(ticket.inputs)} labels, one for each row of the ticket.")
        with self._all_or_nothing():
            known = [label for label in labels if label is not None]
            if known:
                check_kinds([*self._model.classes, *known])
            self._model.learn_ticket(ticket, labels)
        return self

    @property
    def _order(self) -> list[int]:
        """Columns in the order of `classes_`."""
        return np.argsort(to_array(self._model.classes), kind="stable").tolist()

    def _options(self) -> StreamOptions:
        check_choice(self.link, ("probit", "logit"), "link")
        return read_options(self, "bernoulli", link=self.link)

    def _read(self, X: Any, y: Any, *, reset: bool) -> Batch:
        """Check inputs and labels, which become Python's own."""
        try:
            batch = read_batch(self, X, y, reset=reset, is_numeric=False)
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
            check_kinds([*self.state_.classes, *to_labels(batch.targets[:1])])
        return batch._replace(targets=np.array(to_labels(batch.targets), dtype=object))


def _are_known(classes: Any, known: tuple[Hashable, ...]) -> bool:
    """Tell whether a plain list of classes is that which is known, as it is from the second call on."""
    labels = classes.tolist() if isinstance(classes, np.ndarray) else classes
    return (
        isinstance(labels, list | tuple)
        and all(isinstance(each, Hashable) for each in labels)
        and tuple(labels) == known
    )


def _read_classes(classes: Any) -> list[Any]:
    """Read classes that are known to come."""
    try:
        labels = to_labels(column_or_1d(classes))
    except ValueError as error:
        raise ValueRangeError(f"classes must be a list or an array of labels, but is {classes!r}.") from error
    if any(label != label for label in labels):
        raise ValueRangeError(f"classes must be labels, but holds NaN: {classes!r}. Leave it out.")
    return labels
