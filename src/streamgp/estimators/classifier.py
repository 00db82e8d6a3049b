"""Batch classification, for scikit-learn."""

from typing import Any, final

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.estimators.base import AbstractGPEstimator, read_weights, rebuilt, stored_fields
from streamgp.estimators.warps import stand_in
from streamgp.likelihoods import Bernoulli, Softmax
from streamgp.storage import register
from streamgp.tables.labels import to_array, to_labels

__all__ = ["GPClassifier"]


@final
class GPClassifier(ClassifierMixin, AbstractGPEstimator):
    r"""Gaussian-process classification on a table, of two classes or more.

    Two classes have one latent function and a Bernoulli likelihood, more have one each and a softmax. Inputs are
    standardized.

    ```python
    import numpy as np

    X = np.random.default_rng(0).random((60, 2))
    model = sg.GPClassifier(num_inducing=10).fit(X, X[:, 0] > X[:, 1])
    probabilities = model.predict_proba(X[:3])
    ```

    Args:
        link: Of two classes, `"probit"` or `"logit"`.
        kernel: As for `GPRegressor`; a scaled Matérn-5/2 with a lengthscale for each column by default.
        num_inducing: Number of inducing points; `"auto"` adds them until they leave little open.
        num_starts: Starts of the fit.
        time_budget: For `"auto"`: seconds that the fit may take.
        warp: `"auto"` or `"inputs"` bends columns of inputs toward normal values where that makes some rows likelier
            (`"auto"` not for a kernel object); None does not.
        random_state: Seed, generator or None.

    Attributes:
        classes_: Labels, sorted.
        result_: What `streamgp.fit` returned, or what became of it by `condition` and `absorb`.
        info_: Diagnostics of the fit.
        kernel_: The kernel that was learned, for standardized inputs.
        likelihood_: The likelihood that was learned.
        log_marginal_likelihood_value_: The bound on the log marginal likelihood of the labels.
        n_features_in_: Number of input columns.
        feature_names_in_: Names of the columns, if the inputs had any.
    """

    def __init__(
        self,
        *,
        link: Any = "probit",
        kernel: Any = None,
        num_inducing: Any = "auto",
        num_starts: Any = 1,
        time_budget: Any = 10.0,
        warp: Any = "auto",
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            num_inducing=num_inducing,
            num_starts=num_starts,
            time_budget=time_budget,
            warp=warp,
            random_state=random_state,
        )
        self.link = link

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "GPClassifier":
        """Learn from a table.

        Args:
            X: Inputs `(n, d)`: numbers with or without NaN, or a data frame in which columns may hold words and dates.
            y: Labels `(n,)`.
            sample_weight: How often each row counts, in whole numbers.
        """
        X, y, columns = self._read(X, y)
        check_classification_targets(y)
        classes, places = np.unique(y, return_inverse=True)
        counts, weights = read_weights(sample_weight, X)
        if weights is not None:
            raise UnsupportedError(
                "sample_weight must be whole numbers for a classifier: how often each row counts. Round them, or leave "
                "them out."
            )
        if counts is not None:
            X, places = np.repeat(X, counts, axis=0), np.repeat(places, counts)
        if len(np.unique(places)) < 2:
            raise ValueRangeError(
                f"There must be rows of two classes or more, but all are of one class, {classes[places[0]]!r}."
            )
        likelihood = Bernoulli(self.link) if len(classes) == 2 else Softmax(len(classes))
        guide, targets = stand_in(places, likelihood), places.astype(np.float64)
        result, reading = self._fit(X, targets, columns, guide, False, likelihood=likelihood, standardize="inputs")
        self.classes_ = classes
        self._remember(result, reading)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes `(n, k)`."""
        inputs = self._inputs(X)
        columns = [
            self.result_.log_predictive_density(inputs, np.full(len(inputs), float(place)))
            for place in range(len(self.classes_))
        ]
        probabilities: np.ndarray = np.exp(np.stack(columns, axis=-1))
        return probabilities / probabilities.sum(axis=-1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable labels `(n,)`."""
        probabilities = self.predict_proba(X)
        labels: np.ndarray = self.classes_[probabilities.argmax(axis=-1)]
        return labels

    def condition(self, X: Any, y: Any) -> "GPClassifier":
        """Return the estimator conditioned on further rows, through Gaussian sites, with all it knew kept.

        Args:
            X: Inputs `(n, d)`.
            y: Labels `(n,)`, of classes that were there.
        """
        inputs = self._inputs(X)
        other: GPClassifier = self._with_result(self.result_.condition(inputs, self._places(y)))
        return other

    def absorb(self, X: Any, y: Any, num_inducing: int | None = None) -> "GPClassifier":
        """Return the estimator with further rows absorbed, at constant size.

        Args:
            X: Inputs `(n, d)`.
            y: Labels `(n,)`, of classes that were there.
            num_inducing: Number of inducing points; as many as before by default.
        """
        other: GPClassifier = self._absorbed(self._inputs(X), self._places(y), num_inducing)
        return other

    def _places(self, y: Any) -> np.ndarray:
        """Places of labels among the classes."""
        check_is_fitted(self, "result_")
        labels = np.asarray(y)
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise ValueRangeError(
                f"Labels must be of the classes {self.classes_.tolist()!r}, but one is {labels[unknown][0]!r}. Fit "
                "anew with rows of all classes."
            )
        return np.searchsorted(self.classes_, labels).astype(np.float64)


def _fields(classifier: GPClassifier) -> dict[str, Any]:
    fields = stored_fields(classifier)
    fields["learned"]["classes_"] = tuple(to_labels(classifier.classes_))
    return fields


def _rebuild(parameters: dict[str, Any], learned: dict[str, Any]) -> GPClassifier:
    classes = to_array(learned["classes_"])
    classifier: GPClassifier = rebuilt(GPClassifier(**parameters), {**learned, "classes_": classes})
    return classifier


register(GPClassifier, name="batch.GPClassifier", to_fields=_fields, from_fields=_rebuild)
