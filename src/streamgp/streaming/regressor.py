"""Regression on streams, for scikit-learn."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from streamgp.errors import OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.processes import sent_by_value
from streamgp.streaming.estimator import (
    AbstractStreamingEstimator,
    BankFacts,
    EstimatorState,
    generator_of,
    refuse_options,
)
from streamgp.streaming.learner import Predicted, StreamLearner
from streamgp.streaming.merging import merge_learners
from streamgp.streaming.prediction import StreamPrediction
from streamgp.streaming.scoring import ValueScore
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.space_time import (
    ScoredRows,
    SpaceTimeLearner,
    SpaceTimePrediction,
    StreamTicket,
    uses_space_time,
)
from streamgp.streaming.unordered import learn_unordered
from streamgp.streams.explaining import Explanation
from streamgp.streams.history import HistoryPoint
from streamgp.streams.locks import lock_of
from streamgp.streams.reading import Batch, read_numbers, read_total_count

__all__ = ["StreamingGPRegressor"]

_COUNTS = ("poisson", "negative_binomial", "binomial")


@sent_by_value
@final
class StreamingGPRegressor(RegressorMixin, AbstractStreamingEstimator[StreamLearner | SpaceTimeLearner]):
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

    def partial_fit(
        self, X: Any, y: Any, total_count: Any = None, *, sample_weight: Any = None, **options: Any
    ) -> "StreamingGPRegressor":
        """Learn the next rows of a stream, in their order.

        A row that is refused changes nothing. Options that are changed after the first rows count from the next `fit`.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`, or `(n, o)` for several outputs, which share kernel and inducing points.
            total_count: Numbers of trials, one or `(n,)`, for `likelihood="binomial"`.
            sample_weight: Weights of the rows `(n,)`: their noise has the variance that is usual, over the weight. For
                real targets with the default kernel and half-lives.
            options: None.
        """
        refuse_options(options)
        with self._all_or_nothing():
            batch = self._read(X, y, total_count, reset=not self._is_started)
            batch = batch._replace(weights=_read_weights(sample_weight, len(batch.targets)))
            self._learn_rows(self._state_so_far(), batch)
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
        *,
        total_count: Any = None,
        horizon: Any = 1,
    ) -> Any:
        """Predict targets.

        Args:
            X: Inputs `(n, d)`.
            return_std: Return standard deviations of the targets, noise included, and outliers as far as there were
                some, too.
            quantiles: Probabilities of `k` quantiles of the targets, which are returned, too.
            total_count: Numbers of trials, one or `(n,)`, for `likelihood="binomial"`.
            horizon: How many rows ahead the rows are, 1 for the next one: a whole number, or one for each row. What is
                known of a row far ahead is less.

        Returns:
            The means `(n,)`; if more was asked for, a tuple of the means, the standard deviations `(n,)` if asked for,
            and the quantiles `(n, k)` if asked for.
        """
        prediction = self._predict(self._read_inputs(X), total_count, horizon)
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
        learner = self._learner
        if isinstance(learner, SpaceTimeLearner):
            if total_count is not None:
                learner.predict(inputs, read_total_count(total_count, len(inputs)))
            rng = np.random.default_rng(generator.initial_seed())
            with lock_of(self):
                return learner.sample(inputs, num_samples, rng, latent=latent)
        assert learner.model is not None
        draws, experts, prediction = learner.model.sample_latent(inputs, num_samples, generator, latest=learner.latest)
        counts = read_total_count(total_count, len(inputs))
        if counts is not None:
            prediction = learner.predict(inputs, counts)
        if latent:
            return prediction.latent(draws).numpy()
        return prediction.observe(draws, experts, generator).numpy()

    def log_predictive_density(self, X: Any, y: Any, total_count: Any = None) -> np.ndarray:
        """Log density, or probability for counts, of each target `(n,)` given its inputs `(n, d)`."""
        check_is_fitted(self, "state_")
        batch = self._read(X, y, total_count, reset=False)
        prediction = self._predict(batch.inputs, batch.total_count)
        return prediction.log_density(torch.from_numpy(batch.targets)).numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, total_count: Any = None) -> float:
        """Coefficient of determination R² of the predicted means."""
        return float(r2_score(y, self.predict(X, total_count=total_count), sample_weight=sample_weight))

    @property
    def noise_variance_(self) -> Any:
        """Variance of Gaussian noise in the units of the targets, one for each output; NaN for other likelihoods."""
        noise, learner = self._facts.noise_variance, self._learner
        is_single = learner.is_single_output if isinstance(learner, SpaceTimeLearner) else len(noise) == 1
        return float(noise[0]) if is_single else noise

    @property
    def history_(self) -> tuple[HistoryPoint, ...]:
        """What was known along the stream: weights of experts, scale of the noise, points; in bounded memory."""
        return self._space_time("history_").history

    def expect(self, X: Any) -> StreamTicket:
        """Predict the next rows of the stream, whose targets come later, in any order: give them to `learn`.

        ```python
        import numpy as np

        model = sg.StreamingGPRegressor().partial_fit(np.arange(5.0)[:, None], np.arange(5.0))
        ticket = model.expect([[5.0]])
        ticket.prediction.mean
        model.learn(ticket, [5.1])
        ```

        Args:
            X: Inputs `(n, d)`.

        Returns:
            A ticket, whose `prediction` has what was said.
        """
        inputs = self._read_inputs(X)
        with lock_of(self):
            return self._space_time("expect").expect(inputs)

    def learn(self, ticket: StreamTicket, y: Any, sample_weight: Any = None) -> "StreamingGPRegressor":
        """Learn the targets of rows that were asked for, and judge the experts by what was said then.

        Args:
            ticket: What `expect` returned.
            y: Targets `(n,)`, or `(n, o)` for several outputs; NaN for one that will never come.
            sample_weight: Weights of the rows: the noise has the variance that is usual, over the weight.
        """
        learner = self._space_time("learn")
        targets = np.atleast_1d(read_numbers(y, "y"))
        if np.isinf(targets).any():
            raise ValueRangeError("y must be finite, or NaN where a target is missing, but holds infinity.")
        weights = _read_weights(sample_weight, len(targets))
        with self._all_or_nothing():
            score = self.state_.score if isinstance(self.state_.score, ValueScore) else self._no_score()
            scored = learner.learn_ticket(ticket, targets, weights)
            self.state_ = replace(self.state_, score=score.scored(scored))
        return self

    def explain(self, X: Any) -> tuple[Explanation, ...]:
        """Say why rows are predicted as they are: the experts in words with their weights, and the nearest rows.

        Args:
            X: Inputs `(n, d)`.

        Returns:
            For each row an explanation, which prints as a table.
        """
        inputs = self._read_inputs(X)
        with lock_of(self):
            return self._space_time("explain").explain(inputs)

    def _space_time(self, name: str) -> SpaceTimeLearner:
        learner = self._learner
        if isinstance(learner, SpaceTimeLearner):
            return learner
        raise UnsupportedError(
            f"{name} is there for real targets with likelihood='gaussian', kernel=None and half_life='auto'. For other "
            "likelihoods call partial_fit when a target has come."
        )

    @property
    def _facts(self) -> BankFacts | SpaceTimeLearner:
        learner = self._learner
        if isinstance(learner, SpaceTimeLearner):
            return learner
        assert learner.model is not None
        return BankFacts(learner.model)

    def _read(self, X: Any, y: Any, total_count: Any, *, reset: bool) -> Batch:
        batch = self._read_rows(X, y, reset=reset, is_numeric=True)
        return batch._replace(total_count=read_total_count(total_count, len(batch.targets)))

    def _predict(
        self, inputs: np.ndarray, total_count: Any, horizon: Any = 1
    ) -> StreamPrediction | SpaceTimePrediction:
        counts, learner = read_total_count(total_count, len(inputs)), self._learner
        if isinstance(learner, SpaceTimeLearner):
            with lock_of(self):
                return learner.predict(inputs, counts, horizon=_read_horizon(horizon, len(inputs)))
        if not np.array_equal(horizon, 1):
            self._space_time("horizon")
        return learner.predict(inputs, counts)

    def _likelihood(self) -> Any:
        return self.likelihood

    @staticmethod
    def _merged(
        learners: Sequence[StreamLearner | SpaceTimeLearner], base: StreamLearner | SpaceTimeLearner | None
    ) -> StreamLearner | SpaceTimeLearner:
        everyone = [*learners, *([] if base is None else [base])]
        filters = [each for each in everyone if isinstance(each, SpaceTimeLearner)]
        if len(filters) == len(everyone):
            return SpaceTimeLearner.merged(filters[: len(learners)], None if base is None else filters[-1])
        banks = [each for each in everyone if isinstance(each, StreamLearner)]
        if len(banks) < len(everyone):
            raise OptionError("The models have different options. Let all of them begin as copies of one model.")
        return merge_learners(banks[: len(learners)], None if base is None else banks[-1])

    def _start(self, settings: StreamSettings) -> StreamLearner | SpaceTimeLearner:
        return SpaceTimeLearner(settings) if uses_space_time(settings) else StreamLearner(settings)

    def _learned_unordered(self, settings: StreamSettings, batch: Batch) -> StreamLearner | SpaceTimeLearner:
        if uses_space_time(settings):
            learner = SpaceTimeLearner(settings)
            learner.refuse_counts(batch.total_count)
            return learner.learn_unordered(batch.inputs, batch.targets)
        other, _ = learn_unordered(StreamLearner(settings), batch.inputs, batch.targets, batch.total_count)
        return other

    def _learned(
        self, state: EstimatorState[StreamLearner | SpaceTimeLearner], batch: Batch
    ) -> EstimatorState[StreamLearner | SpaceTimeLearner]:
        score = state.score if isinstance(state.score, ValueScore) else self._no_score()
        learner = state.learner

        def add(part: Predicted | ScoredRows) -> None:
            nonlocal score
            score = score.learned(part)

        if isinstance(learner, SpaceTimeLearner):
            learner.learn(batch.inputs, batch.targets, batch.total_count, weights=batch.weights, on_predicted=add)
            return EstimatorState(learner, state.watch, score)
        _refuse_weights(batch)
        other, _ = learner.learn(batch.inputs, batch.targets, batch.total_count, on_predicted=add)
        return EstimatorState(other, state.watch, score)

    def _no_score(self) -> ValueScore:
        return ValueScore()

    def _errors(self, learner: StreamLearner | SpaceTimeLearner, batch: Batch) -> list[float]:
        """Absolute errors in predictive standard deviations."""
        prediction, y = learner.predict(batch.inputs, batch.total_count), torch.from_numpy(batch.targets)
        errors = (y - prediction.mean).abs() / prediction.variance.sqrt()
        return errors.reshape(len(y), -1).mean(-1).tolist()


def _read_weights(sample_weight: Any, num_rows: int) -> np.ndarray | None:
    """Weights of rows as an array; None if there are none."""
    if sample_weight is None:
        return None
    weights = read_numbers(sample_weight, "sample_weight")
    if weights.shape != (num_rows,):
        raise ShapeError(
            f"sample_weight must have shape ({num_rows},), one weight for each row, but has shape {weights.shape}."
        )
    if not (np.isfinite(weights).all() and (weights > 0.0).all()):
        raise ValueRangeError("sample_weight must be positive and finite. Leave out rows that are not to count.")
    return weights


def _refuse_weights(batch: Batch) -> None:
    if batch.weights is not None:
        raise UnsupportedError(
            "sample_weight is there for real targets with likelihood='gaussian', kernel=None and half_life='auto'. "
            "Leave it out; a row that is to count twice can be there twice."
        )


def _read_horizon(horizon: Any, num_rows: int) -> np.ndarray:
    """Whole numbers of at least one, one for each row."""
    numbers = np.asarray(horizon)
    if numbers.shape not in ((), (num_rows,)):
        raise ShapeError(
            f"horizon must be a whole number or have shape ({num_rows},), one for each row, but has shape "
            f"{numbers.shape}."
        )
    if numbers.dtype.kind not in "iu" or (numbers < 1).any():
        raise ValueRangeError(f"horizon must be a whole number of rows ahead, 1 for the next row, but is {horizon!r}.")
    return np.array(np.broadcast_to(numbers, num_rows), dtype=np.int64)
