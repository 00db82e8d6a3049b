"""Regression on streams, for scikit-learn."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from streamgp.processes import sent_by_value
from streamgp.streaming.batches import Batch, read_total_count
from streamgp.streaming.estimator import AbstractStreamingEstimator, EstimatorState, generator_of, refuse_options
from streamgp.streaming.learner import Predicted, StreamLearner
from streamgp.streaming.merging import merge_learners
from streamgp.streaming.model import StreamModel
from streamgp.streaming.prediction import StreamPrediction
from streamgp.streaming.scoring import ValueScore
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.unordered import learn_unordered

__all__ = ["StreamingGPRegressor"]

_COUNTS = ("poisson", "negative_binomial", "binomial")


@sent_by_value
@final
class StreamingGPRegressor(RegressorMixin, AbstractStreamingEstimator[StreamLearner]):
    r"""Gaussian-process regression that learns from a stream in constant time and memory.

    `partial_fit` learns the next rows of a stream, `fit` a data set whose order means nothing. The first `warmup` rows
    of a stream are kept, and units, hyperparameters and inducing points learned from them, anew each time their number
    has doubled. After that the units stay; rows are absorbed into a sparse GP, and hyperparameters are learned again
    by the policy `refit`. Far-outside inputs are counted in `num_outside_`, and reported once by a warning.

    ```python
    import numpy as np

    X = np.random.default_rng(0).random((60, 2))
    model = sg.StreamingGPRegressor()
    for start in range(0, 60, 20):
        model.partial_fit(X[start : start + 20], np.sin(6 * X[start : start + 20, 0]))
    mean, quantiles = model.predict(X[:3], quantiles=[0.05, 0.95])
    ```

    Args:
        likelihood: `"gaussian"`, `"student_t"` (real targets with long tails), `"poisson"`, `"negative_binomial"`
            (counts), `"binomial"` (successes, with `total_count`), or an object of `streamgp.likelihoods`. Real
            targets of a likelihood given by name are standardized; one given as an object is in their own units.
        kernel: GPyTorch kernel for standardized inputs; a scaled Matérn-5/2 with a lengthscale for each column by
            default. Parameters with `requires_grad=False` stay as they are.
        num_inducing: Number of inducing points; `"auto"` for 100, and more where those leave more open than there is
            noise, or as a long stream goes on.
        max_inducing: For `"auto"`: the most points, which bound time and memory.
        warmup: Rows after which the units are frozen.
        refit: When hyperparameters are learned after the warm-up: `"auto"` (when the number of rows has doubled, but at
            least every 1000 rows; where a long stream does not change, each time the buffer is full of new rows),
            `"doubling"`, `"never"`, or every so many rows; see `refits_`.
        buffer_size: Latest rows that a refit sees one by one; older ones are summarized in a belief.
        half_life: `"auto"` learns with several half-lives side by side, with and without a level and a linear trend,
            and mixes them by how well they predict: nothing has to be known of how the stream moves. A number of rows
            after which half of what was known is lost; None to forget nothing.
        sites: How observations that are not Gaussian become Gaussian ones: `"variational"`, `"laplace"`, or a
            `streamgp.sites.SiteRule` with its tolerance and most iterations.
        drift_detector: A detector of `river.drift`, or any object with `update(value)` and `drift_detected`; copied. It
            is shown the absolute errors, in predictive standard deviations, of rows before they are learned.
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
        likelihood: Any = "gaussian",
        *,
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
        self.likelihood = likelihood

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = isinstance(self.likelihood, str) and self.likelihood in _COUNTS
        tags.target_tags.multi_output = isinstance(self.likelihood, str) and self.likelihood == "gaussian"
        return tags

    def fit(self, X: Any, y: Any, total_count: Any = None, **options: Any) -> "StreamingGPRegressor":
        """Forget everything, and learn from a data set whose order means nothing.

        Hyperparameters are learned on a random part of as many rows as `warmup` or `buffer_size` says, whichever is
        larger; the others are absorbed in blocks, with refits by policy, where `"auto"` means each time the number of
        rows has doubled. `partial_fit` goes on from there.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`, or `(n, o)` for several outputs, which share kernel and inducing points.
            total_count: Numbers of trials, one or `(n,)`, for `likelihood="binomial"`.
            options: None: weights of rows are refused.
        """
        refuse_options(options)
        with self._all_or_nothing():
            self._fit_rows(self._read(X, y, total_count, reset=True))
        return self

    def partial_fit(self, X: Any, y: Any, total_count: Any = None, **options: Any) -> "StreamingGPRegressor":
        """Learn the next rows of a stream, in their order.

        A row that is refused changes nothing. Options that are changed after the first rows count from the next `fit`.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`, or `(n, o)` for several outputs, which share kernel and inducing points.
            total_count: Numbers of trials, one or `(n,)`, for `likelihood="binomial"`.
            options: None: weights of rows are refused.
        """
        refuse_options(options)
        with self._all_or_nothing():
            batch = self._read(X, y, total_count, reset=not self._is_started)
            self._learn_rows(self._state_so_far(), batch)
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
        *,
        total_count: Any = None,
    ) -> Any:
        """Predict targets.

        Args:
            X: Inputs `(n, d)`.
            return_std: Return standard deviations of the targets, noise included, and outliers as far as there were
                some, too.
            quantiles: Probabilities of `k` quantiles of the targets, which are returned, too.
            total_count: Numbers of trials, one or `(n,)`, for `likelihood="binomial"`.

        Returns:
            The means `(n,)`; if more was asked for, a tuple of the means, the standard deviations `(n,)` if asked for,
            and the quantiles `(n, k)` if asked for.
        """
        prediction = self._predict(self._read_inputs(X), total_count)
        asked = [prediction.mean.numpy()]
        if return_std:
            asked.append(prediction.variance.sqrt().numpy())
        if quantiles is not None:
            asked.append(prediction.quantiles(quantiles).numpy())
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
        inputs, generator = self._read_inputs(X), generator_of(random_state)
        draws, experts, prediction = self._model.sample_latent(
            inputs, num_samples, generator, latest=self._learner.latest
        )
        counts = read_total_count(total_count, len(inputs))
        if counts is not None:
            prediction = self._learner.predict(inputs, counts)
        if latent:
            return prediction.latent(draws).numpy()
        return prediction.observe(draws, experts, generator).numpy()

    def log_predictive_density(self, X: Any, y: Any, total_count: Any = None) -> np.ndarray:
        """Log density, or probability for counts, of each target `(n,)` given its inputs `(n, d)`."""
        check_is_fitted(self, "state_")
        batch = self._read(X, y, total_count, reset=False)
        prediction = self._learner.predict(batch.inputs, batch.total_count)
        return prediction.log_density(torch.from_numpy(batch.targets)).numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, total_count: Any = None) -> float:
        """Coefficient of determination R² of the predicted means."""
        return float(r2_score(y, self.predict(X, total_count=total_count), sample_weight=sample_weight))

    @property
    def noise_variance_(self) -> Any:
        """Variance of Gaussian noise in the units of the targets, one for each output; NaN for other likelihoods."""
        model = self._model
        variance = model.likelihood.gaussian_noise_variance
        if variance is None:
            return float("nan")
        noise = (variance * model.units.target_scale.square()).squeeze(-1).numpy()
        return float(noise[0]) if model.is_single_output else noise

    @property
    def _model(self) -> StreamModel:
        model = self._learner.model
        assert model is not None
        return model

    def _read(self, X: Any, y: Any, total_count: Any, *, reset: bool) -> Batch:
        batch = self._read_rows(X, y, reset=reset, is_numeric=True)
        return batch._replace(total_count=read_total_count(total_count, len(batch.targets)))

    def _predict(self, inputs: np.ndarray, total_count: Any) -> StreamPrediction:
        return self._learner.predict(inputs, read_total_count(total_count, len(inputs)))

    def _likelihood(self) -> Any:
        return self.likelihood

    @staticmethod
    def _merged(learners: Sequence[StreamLearner], base: StreamLearner | None) -> StreamLearner:
        return merge_learners(learners, base)

    def _start(self, settings: StreamSettings) -> StreamLearner:
        return StreamLearner(settings)

    def _learned_unordered(self, settings: StreamSettings, batch: Batch) -> StreamLearner:
        learner, _ = learn_unordered(StreamLearner(settings), *batch)
        return learner

    def _learned(self, state: EstimatorState[StreamLearner], batch: Batch) -> EstimatorState[StreamLearner]:
        score = state.score if isinstance(state.score, ValueScore) else self._no_score()

        def add(part: Predicted) -> None:
            nonlocal score
            score = score.learned(part)

        learner, _ = state.learner.learn(*batch, on_predicted=add)
        return EstimatorState(learner, state.watch, score)

    def _no_score(self) -> ValueScore:
        return ValueScore()

    def _errors(self, learner: StreamLearner, batch: Batch) -> list[float]:
        """Absolute errors in predictive standard deviations."""
        prediction, y = learner.predict(batch.inputs, batch.total_count), torch.from_numpy(batch.targets)
        errors = (y - prediction.mean).abs() / prediction.variance.sqrt()
        return errors.reshape(len(y), -1).mean(-1).tolist()
