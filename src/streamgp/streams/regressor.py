"""Regression on streams, for scikit-learn."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags, check_random_state

from streamgp.errors import OptionError, UnsupportedError, ValueRangeError
from streamgp.processes import sent_by_value
from streamgp.streams.estimator import AbstractStreamEstimator, read_output, refuse_options
from streamgp.streams.locks import lock_of
from streamgp.streams.model import StreamTicket, ValuePrediction
from streamgp.streams.options import StreamOptions
from streamgp.streams.parameters import read_options
from streamgp.streams.reading import (
    Batch,
    read_batch,
    read_horizon,
    read_numbers,
    read_total_count,
    read_weights,
)

__all__ = ["StreamingGPRegressor"]

_COUNTS = ("poisson", "negative_binomial", "binomial")


@sent_by_value
@final
class StreamingGPRegressor(RegressorMixin, AbstractStreamEstimator):
    r"""Gaussian-process regression that learns from a stream in constant time and memory.

    `partial_fit` learns the next rows of a stream, `fit` a data set whose order means nothing. Units, hyperparameters
    and inducing points are learned from the first rows on, and anew by the policy `refit`.

    ```python
    import numpy as np

    X = np.random.default_rng(0).random((60, 2))
    model = sg.StreamingGPRegressor()
    for start in range(0, 60, 20):
        model.partial_fit(X[start : start + 20], np.sin(6 * X[start : start + 20, 0]))
    mean, quantiles = model.predict(X[:3], quantiles=[0.05, 0.95])
    ```

    Args:
        likelihood: `"gaussian"`, `"student_t"` (real targets with outliers), `"poisson"`, `"negative_binomial"`
            (counts), `"binomial"` (successes, with `total_count`), or an object of `streamgp.likelihoods`. Real
            targets of a likelihood given by name are standardized; one given as an object is in their own units.
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
        half_life: `"auto"` learns with several half-lives side by side and mixes them by how well they predict: nothing
            has to be known of how the stream moves. A number of rows after which half of what was known is lost; None
            to forget nothing.
        drift_detector: A detector of `river.drift`, its name such as `"adwin"`, or any object with `update(value)` and
            `drift_detected`; copied. It is shown the absolute errors, in predictive standard deviations, of rows
            before they are learned.
        on_drift: What to do when errors have grown: `"rewarm"` begins again with a warm-up, `"reset"` keeps units and
            hyperparameters and forgets the rows.
        random_state: Seed, generator or None: for the order of rows in `fit`.

    Attributes:
        state_: All that was learned.
        n_features_in_: Number of input columns.
        feature_names_in_: Names of the columns, if the inputs had any.
    """

    _is_label = False

    def __init__(
        self,
        likelihood: Any = "gaussian",
        *,
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
        self.likelihood = likelihood

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = isinstance(self.likelihood, str) and self.likelihood in _COUNTS
        tags.target_tags.multi_output = isinstance(self.likelihood, str) and self.likelihood == "gaussian"
        return tags

    def fit(self, X: Any, y: Any, total_count: Any = None, **options: Any) -> "StreamingGPRegressor":
        """Forget everything, and learn from a data set whose order means nothing; `partial_fit` goes on from there.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`, or `(n, o)` for several outputs.
            total_count: Numbers of trials, one or `(n,)`, for `likelihood="binomial"`.
            options: None: weights of rows are refused.
        """
        refuse_options(options)
        with self._all_or_nothing():
            self._fit_rows(self._read(X, y, total_count, reset=True))
        return self

    def partial_fit(
        self, X: Any, y: Any, total_count: Any = None, *, sample_weight: Any = None, **options: Any
    ) -> "StreamingGPRegressor":
        """Learn the next rows of a stream, in their order.

        A row that is refused changes nothing. Options that are changed after the first rows count from the next `fit`.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`, or `(n, o)` for several outputs, of which those that are not known are NaN.
            total_count: Numbers of trials, one or `(n,)`, for `likelihood="binomial"`.
            sample_weight: Weights of the rows `(n,)`: their noise has the variance that is usual, over the weight. For
                other likelihoods than the Gaussian, the power to which a row counts.
            options: None.
        """
        refuse_options(options)
        with self._all_or_nothing():
            batch = self._read(X, y, total_count, reset=not self._is_started)
            batch = batch._replace(weights=read_weights(sample_weight, len(batch.targets)))
            self._learn_rows(self.state_ if self._is_started else self._new_model(), batch)
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
        *,
        return_cov: bool = False,
        total_count: Any = None,
        horizon: Any = 1,
        output: str = "array",
    ) -> Any:
        """Predict targets.

        Args:
            X: Inputs `(n, d)`.
            return_std: Return standard deviations of the targets, noise included, too.
            quantiles: Probabilities of `k` quantiles of the targets, which are returned, too.
            return_cov: Return the covariance matrix of the targets, noise on its diagonal, instead of deviations; costs
                O(n³).
            total_count: Numbers of trials, one or `(n,)`, for `likelihood="binomial"`.
            horizon: How many rows ahead the rows are, 1 for the next one: a whole number, or one for each row. What is
                known of a row far ahead is less.
            output: `"frame"` returns a table of means, standard deviations and quantiles, 5 % and 95 % by default, with
                the index of `X`.

        Returns:
            The means `(n,)`; if more was asked for, a tuple of the means, the standard deviations `(n,)` or covariances
            `(n, n)` if asked for, and the quantiles `(n, k)` if asked for.
        """
        if return_std and return_cov:
            raise OptionError("Either return_std or return_cov may be asked for, as one is on the other's diagonal.")
        is_frame, index = read_output(output, X)
        inputs = self._read_inputs(X)
        prediction = self._predict(inputs, total_count, horizon)
        if is_frame:
            return replace(prediction, index=index).frame(*(() if quantiles is None else (quantiles,)))
        asked = [prediction.mean]
        if return_std:
            asked.append(prediction.deviation)
        if return_cov:
            if len(self._model.learners) > 1:
                raise UnsupportedError("return_cov is there for one output. Use sample for several.")
            with lock_of(self):
                asked.append(self._first.covariance(inputs))
        if quantiles is not None:
            asked.append(prediction.quantiles(quantiles))
        return asked[0] if len(asked) == 1 else tuple(asked)

    def sample(
        self, X: Any, num_samples: int = 1, random_state: Any = None, *, latent: bool = False, total_count: Any = None
    ) -> np.ndarray:
        """Draw targets for all inputs together: functions from the belief, and noise around them.

        Args:
            X: Inputs `(n, d)`; costs O(n³).
            num_samples: Number of draws.
            random_state: Seed, generator, or None for NumPy's own.
            latent: Return the functions, without the noise: of what the likelihood takes, the logarithm of the rate for
                counts for instance. For Gaussian and Student-t noise they are in the units of the targets.
            total_count: Numbers of trials, one or `(n,)`, for `likelihood="binomial"`.

        Returns:
            Draws `(num_samples, n)`.
        """
        inputs = self._read_inputs(X)
        rng = np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))
        counts = read_total_count(total_count, len(inputs))
        with lock_of(self):
            return self._model.sample(inputs, num_samples, rng, latent=latent, total_count=counts)

    def log_predictive_density(self, X: Any, y: Any, total_count: Any = None) -> np.ndarray:
        """Log density, or probability for counts, of each target `(n,)` given its inputs `(n, d)`."""
        assert self._model is not None
        batch = self._read(X, y, total_count, reset=False)
        with lock_of(self):
            prediction = self._model.predict(batch.inputs, batch.total_count)
        assert isinstance(prediction, ValuePrediction)
        return prediction.log_density(batch.targets)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, total_count: Any = None) -> float:
        """Coefficient of determination R² of the predicted means."""
        return float(r2_score(y, self.predict(X, total_count=total_count), sample_weight=sample_weight))

    @property
    def noise_variance_(self) -> Any:
        """Variance of Gaussian noise in the units of the targets, one for each output; NaN for other likelihoods."""
        noise = np.array([each.noise_variance for each in self._model.learners])
        return float(noise[0]) if self._model.is_single_output else noise

    def learn(self, ticket: StreamTicket, y: Any, sample_weight: Any = None) -> "StreamingGPRegressor":
        """Learn the targets of rows that were asked for, and judge the experts by what was said then.

        Args:
            ticket: What `expect` returned.
            y: Targets `(n,)`, or `(n, o)` for several outputs; NaN for one that will never come.
            sample_weight: Weights of the rows: the noise has the variance that is usual, over the weight.
        """
        targets = np.atleast_1d(read_numbers(y, "y"))
        if np.isinf(targets).any():
            raise ValueRangeError("y must be finite, or NaN where a target is missing, but holds infinity.")
        weights = read_weights(sample_weight, len(targets))
        with self._all_or_nothing():
            self._model.learn_ticket(ticket, targets, weights)
        return self

    def _options(self) -> StreamOptions:
        return read_options(self, self.likelihood)

    def _read(self, X: Any, y: Any, total_count: Any, *, reset: bool) -> Batch:
        batch = read_batch(self, X, y, reset=reset, is_numeric=True)
        return batch._replace(total_count=read_total_count(total_count, len(batch.targets)))

    def _predict(self, inputs: np.ndarray, total_count: Any, horizon: Any) -> ValuePrediction:
        counts = read_total_count(total_count, len(inputs))
        with lock_of(self):
            prediction = self._model.predict(inputs, counts, horizon=read_horizon(horizon, len(inputs)))
        assert isinstance(prediction, ValuePrediction)
        return prediction
