"""Streaming Gaussian processes as estimators of river.

Features come by name, in any order. One that is missing is replaced by the mean of what was given of it so far. One
that is new becomes an input during the warm-up; after it, new features are ignored and counted.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, final

import numpy as np
import pandas as pd
import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from river import base
from torch import Tensor

from streamgp.errors import DTypeError, ValueRangeError
from streamgp.integrations.features import FeatureTable, check_values, read_values
from streamgp.likelihoods import AbstractLikelihood, Bernoulli
from streamgp.sites import SiteRule
from streamgp.streaming import OneVsRest, StreamLearner, StreamSettings
from streamgp.streaming.drift import DriftDetector, DriftWatch
from streamgp.streaming.learner import Predicted
from streamgp.streaming.locks import lock_of
from streamgp.streaming.one_vs_rest import PredictedLabels
from streamgp.streaming.prediction import StreamPrediction
from streamgp.streaming.report import ScoreReport
from streamgp.streaming.scoring import ClassScore, ValueScore
from streamgp.streaming.widening import widen

__all__ = ["StreamingGPClassifier", "StreamingGPMultiTargetRegressor", "StreamingGPRegressor"]

Learner = TypeVar("Learner", StreamLearner, OneVsRest)


@final
@dataclass(frozen=True, eq=False)
class NamedStream(Generic[Learner]):
    """What is known of a stream, and which feature is which input.

    Attributes:
        learner: What is known.
        features: The features.
        watch: Detector of changes; None if there is none.
        score: How good rows were predicted before they were learned; None before the first.
    """

    learner: Learner
    features: FeatureTable = field(default_factory=FeatureTable)
    watch: DriftWatch | None = None
    score: ValueScore | ClassScore | None = None

    def inputs(self, names: Sequence[Hashable], values: np.ndarray) -> Float[Tensor, "n d"]:
        """Inputs from values `(n, k)` of features by name."""
        return torch.from_numpy(self.features.columns(names, values))

    def with_features(self, names: Sequence[Hashable], values: np.ndarray) -> "NamedStream[Learner]":
        """Take note of values `(n, k)` of features that are about to be learned."""
        learner, features = self.learner, self.features
        new = [] if learner.is_warm else features.new_names(names)
        if new:
            first = torch.tensor([values[0, list(names).index(name)] for name in new], dtype=torch.float64)
            learner, features = _widened(learner, first), features.with_columns(new)
        if not features.names:
            raise ValueRangeError("A row must have at least one feature, but the first one has none.")
        return replace(self, learner=learner, features=features.observe(names, values))

    def watched(self, errors: Callable[[], Sequence[float]]) -> "NamedStream[Learner]":
        """Show the detector the errors of rows that are about to be learned, and begin anew if it finds a change."""
        if self.watch is None or not self.learner.is_warm:
            return self
        watch, change = self.watch.inspect(errors())
        learner = self.learner
        if change is not None:
            learner = learner.reset() if watch.action == "reset" else learner.rewarm()
        return replace(self, learner=learner, watch=watch)


@final
class StreamingGPRegressor(base.MiniBatchRegressor):
    """Gaussian-process regression that learns from a stream in constant time and memory.

    Args:
        likelihood: `"gaussian"`, `"student_t"`, `"poisson"`, `"negative_binomial"`, or an object of
            `streamgp.likelihoods`.
        kernel: GPyTorch kernel for standardised inputs; a scaled Matérn-5/2 with a lengthscale for each by default.
        num_inducing: Number of inducing points; `"auto"` adds them where the stream needs them.
        max_inducing: For `"auto"`: the most points.
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

    def __init__(
        self,
        likelihood: str | AbstractLikelihood = "gaussian",
        *,
        kernel: Kernel | None = None,
        num_inducing: int | str = 100,
        max_inducing: int = 256,
        warmup: int = 200,
        refit: str | int = "auto",
        buffer_size: int = 2000,
        half_life: float | str | None = "auto",
        sites: SiteRule | None = None,
        drift_detector: DriftDetector | None = None,
        on_drift: str = "rewarm",
        seed: int = 0,
    ) -> None:
        self.likelihood = likelihood
        self.kernel = kernel
        self.num_inducing = num_inducing
        self.max_inducing = max_inducing
        self.warmup = warmup
        self.refit = refit
        self.buffer_size = buffer_size
        self.half_life = half_life
        self.sites = sites
        self.drift_detector = drift_detector
        self.on_drift = on_drift
        self.seed = seed
        settings = _settings(
            likelihood,
            kernel=kernel,
            num_inducing=num_inducing,
            max_inducing=max_inducing,
            warmup=warmup,
            refit=refit,
            buffer_size=buffer_size,
            half_life=half_life,
            sites=sites,
            seed=seed,
        )
        self._stream = NamedStream(StreamLearner(settings), watch=_watch(drift_detector, on_drift))

    @property
    def num_ignored(self) -> int:
        """Values so far of features that were not there during the warm-up."""
        return self._stream.features.num_ignored

    def score_report(self) -> ScoreReport:
        """How good rows were predicted before they were learned, beside naive baselines."""
        return ScoreReport(self._stream.score or ValueScore())

    def _unit_test_skips(self) -> set[str]:
        """Name checks of river that do not apply: rows of a block have the same age, and judge the experts together."""
        return {"check_learn_many_matches_learn_one"}

    def learn_one(self, x: dict[Hashable, Any], y: float) -> None:
        """Learn one row."""
        self._learn(list(x), _row(x), np.array([float(y)]))

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn rows in their order; a block of them takes much less time than one after the other."""
        self._learn(list(X.columns), _matrix(X), y.to_numpy(dtype=np.float64, copy=True))

    def predict_one(self, x: dict[Hashable, Any]) -> float:
        """Mean of the target; zero before the first row was learned."""
        return float(self._predict(list(x), _row(x))[0])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Means of the targets."""
        return pd.Series(self._predict(list(X.columns), _matrix(X)), index=X.index)

    def forecast_one(self, x: dict[Hashable, Any]) -> StreamPrediction | None:
        """The whole distribution of the target: mean, variance, quantiles, log density; None before the first row."""
        stream = self._stream
        if not stream.learner.num_seen:
            return None
        return stream.learner.predict(stream.inputs(list(x), _row(x)))

    def _learn(self, names: Sequence[Hashable], values: np.ndarray, y: np.ndarray) -> None:
        if not len(y):
            return
        with lock_of(self):
            stream = self._stream.with_features(names, values)
            X, targets = stream.inputs(names, values), torch.from_numpy(y)
            stream = stream.watched(lambda: _errors(stream.learner.predict(X), targets))
            score = stream.score if isinstance(stream.score, ValueScore) else ValueScore()

            def add(part: Predicted) -> None:
                nonlocal score
                score = score.learned(part)

            learner, _ = stream.learner.learn(X, targets, on_predicted=add)
            self._stream = replace(stream, learner=learner, score=score)

    def _predict(self, names: Sequence[Hashable], values: np.ndarray) -> np.ndarray:
        stream = self._stream
        if not stream.learner.num_seen:
            return np.zeros(len(values))
        return stream.learner.predict(stream.inputs(names, values)).mean.numpy()


@final
class StreamingGPClassifier(base.MiniBatchClassifier):
    """Gaussian-process classification that learns from a stream in constant time and memory.

    Args:
        link: `"probit"`, whose probabilities have a closed form, or `"logit"`.
        kernel: GPyTorch kernel for standardised inputs; a scaled Matérn-5/2 with a lengthscale for each by default.
        num_inducing: Number of inducing points for each class; `"auto"` adds them where the stream needs them.
        max_inducing: For `"auto"`: the most points.
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

    def __init__(
        self,
        *,
        link: str = "probit",
        kernel: Kernel | None = None,
        num_inducing: int | str = 100,
        max_inducing: int = 256,
        warmup: int = 200,
        refit: str | int = "auto",
        buffer_size: int = 2000,
        half_life: float | str | None = "auto",
        sites: SiteRule | None = None,
        drift_detector: DriftDetector | None = None,
        on_drift: str = "rewarm",
        seed: int = 0,
    ) -> None:
        self.link = link
        self.kernel = kernel
        self.num_inducing = num_inducing
        self.max_inducing = max_inducing
        self.warmup = warmup
        self.refit = refit
        self.buffer_size = buffer_size
        self.half_life = half_life
        self.sites = sites
        self.drift_detector = drift_detector
        self.on_drift = on_drift
        self.seed = seed
        settings = _settings(
            Bernoulli(link),
            kernel=kernel,
            num_inducing=num_inducing,
            max_inducing=max_inducing,
            warmup=warmup,
            refit=refit,
            buffer_size=buffer_size,
            half_life=half_life,
            sites=sites,
            seed=seed,
        )
        self._stream = NamedStream(OneVsRest(settings), watch=_watch(drift_detector, on_drift))

    @property
    def num_ignored(self) -> int:
        """Values so far of features that were not there during the warm-up."""
        return self._stream.features.num_ignored

    def score_report(self) -> ScoreReport:
        """How good rows were predicted before they were learned, beside naive baselines."""
        return ScoreReport(self._stream.score or ClassScore())

    @property
    def _multiclass(self) -> bool:
        return True

    def _unit_test_skips(self) -> set[str]:
        """Name checks of river that do not apply: labels of a block are learned jointly, and judge the experts so."""
        return {"check_learn_many_matches_learn_one"}

    def learn_one(self, x: dict[Hashable, Any], y: Hashable) -> None:
        """Learn one row."""
        self._learn(list(x), _row(x), [y.item() if isinstance(y, np.generic) else y])

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn rows in their order; a block of them takes much less time than one after the other."""
        self._learn(list(X.columns), _matrix(X), y.tolist())

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Any, float]:
        """Probabilities of the labels so far; none before the first row was learned."""
        if kwargs:
            raise DTypeError(f"predict_proba_one takes a row and nothing else, but got {sorted(kwargs)} as well.")
        return dict(zip(self._stream.learner.classes, self._predict(list(x), _row(x))[0].tolist(), strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Probabilities of the labels so far, one column for each."""
        probabilities = self._predict(list(X.columns), _matrix(X))
        return pd.DataFrame(probabilities, columns=list(self._stream.learner.classes), index=X.index)

    def _learn(self, names: Sequence[Hashable], values: np.ndarray, y: Sequence[Hashable]) -> None:
        if not len(y):
            return
        with lock_of(self):
            stream = self._stream.with_features(names, values)
            X = stream.inputs(names, values)
            stream = stream.watched(lambda: _mistakes(stream.learner, X, y))
            score = stream.score if isinstance(stream.score, ClassScore) else ClassScore()

            def add(part: PredictedLabels) -> None:
                nonlocal score
                score = score.learned(part)

            learner, _ = stream.learner.learn(X, y, on_predicted=add)
            self._stream = replace(stream, learner=learner, score=score)

    def _predict(self, names: Sequence[Hashable], values: np.ndarray) -> np.ndarray:
        stream = self._stream
        if not stream.learner.num_seen:
            return np.zeros((len(values), 0))
        return stream.learner.predict(stream.inputs(names, values)).numpy()


@final
class StreamingGPMultiTargetRegressor(base.MultiTargetRegressor):
    """Gaussian-process regression of several real targets, which share kernel and inducing points.

    The first row says which targets there are; all rows must have them.

    Args:
        kernel: GPyTorch kernel for standardised inputs; a scaled Matérn-5/2 with a lengthscale for each by default.
        num_inducing: Number of inducing points; `"auto"` adds them where the stream needs them.
        max_inducing: For `"auto"`: the most points.
        warmup: Rows after which the features and their units are frozen.
        refit: When hyperparameters are learned after that: `"auto"`, `"doubling"`, `"never"`, or every so many rows.
        buffer_size: Latest rows that a refit sees one by one.
        half_life: `"auto"` mixes several half-lives by how well they predict; a number of rows, or None to forget
            nothing.
        drift_detector: A detector of `river.drift`, copied; None for none. It is shown the mean error of each row
            before it is learned, in predictive standard deviations.
        on_drift: What to do when errors have grown: `"rewarm"` begins again with a warm-up, `"reset"` keeps units and
            hyperparameters and forgets the rows.
        seed: Seed of the choices of training.
    """

    def __init__(
        self,
        *,
        kernel: Kernel | None = None,
        num_inducing: int | str = 100,
        max_inducing: int = 256,
        warmup: int = 200,
        refit: str | int = "auto",
        buffer_size: int = 2000,
        half_life: float | str | None = "auto",
        drift_detector: DriftDetector | None = None,
        on_drift: str = "rewarm",
        seed: int = 0,
    ) -> None:
        self.kernel = kernel
        self.num_inducing = num_inducing
        self.max_inducing = max_inducing
        self.warmup = warmup
        self.refit = refit
        self.buffer_size = buffer_size
        self.half_life = half_life
        self.drift_detector = drift_detector
        self.on_drift = on_drift
        self.seed = seed
        self._targets: tuple[Hashable, ...] = ()
        # One regressor of a stream whose targets have an axis of their own.
        self._regressor = StreamingGPRegressor(
            kernel=kernel,
            num_inducing=num_inducing,
            max_inducing=max_inducing,
            warmup=warmup,
            refit=refit,
            buffer_size=buffer_size,
            half_life=half_life,
            drift_detector=drift_detector,
            on_drift=on_drift,
            seed=seed,
        )

    @property
    def num_ignored(self) -> int:
        """Values so far of features that were not there during the warm-up."""
        return self._regressor.num_ignored

    def score_report(self) -> ScoreReport:
        """How good rows were predicted before they were learned, beside naive baselines; means over targets."""
        return self._regressor.score_report()

    def learn_one(self, x: dict[Hashable, Any], y: dict[Hashable, float], **kwargs: Any) -> None:
        """Learn one row."""
        if kwargs:
            raise DTypeError(f"learn_one takes a row and its targets, but got {sorted(kwargs)} as well.")
        with lock_of(self):
            names = self._targets or tuple(y)
            if not y or set(names) != set(y):
                raise ValueRangeError(
                    f"y must have the targets {list(names) or 'of at least one name'}, as the first row, but has "
                    f"{list(y)}. Impute what is missing."
                )
            values = read_values(list(names), [y[name] for name in names])
            self._regressor._learn(list(x), _row(x), values)
            self._targets = names

    def predict_one(self, x: dict[Hashable, Any]) -> dict[Hashable, float]:
        """Means of the targets; nothing before the first row was learned."""
        if not self._targets:
            return {}
        means = self._regressor._predict(list(x), _row(x))[0].tolist()
        return dict(zip(self._targets, means, strict=True))

    def forecast_one(self, x: dict[Hashable, Any]) -> StreamPrediction | None:
        """The whole distribution of the targets, in the order in which they first came; None before the first row."""
        return self._regressor.forecast_one(x)


def _settings(likelihood: str | AbstractLikelihood, *, sites: SiteRule | None, **options: Any) -> StreamSettings:
    """Options of a stream, with the usual sites if none are given."""
    given: dict[str, Any] = {} if sites is None else {"sites": sites}
    return StreamSettings(likelihood, **options, **given)


def _watch(detector: DriftDetector | None, action: str) -> DriftWatch | None:
    return None if detector is None else DriftWatch.start(detector, action)


def _errors(prediction: StreamPrediction, y: Float[Tensor, "n ..."]) -> list[float]:
    """Absolute errors in predictive standard deviations, averaged over outputs."""
    errors = (y - prediction.mean).abs() / prediction.variance.sqrt()
    return errors.reshape(len(y), -1).mean(-1).tolist()


def _mistakes(learner: OneVsRest, X: Float[Tensor, "n d"], y: Sequence[Hashable]) -> list[float]:
    """One for each row that is predicted wrongly, zero for the others."""
    best = learner.predict(X).argmax(-1).tolist()
    return [float(learner.classes[index] != label) for index, label in zip(best, y, strict=True)]


def _widened(learner: Learner, values: Float[Tensor, " k"]) -> Learner:
    """A learner with more inputs, which all of its rows get these values of."""
    if isinstance(learner, OneVsRest):
        return replace(learner, learner=None if learner.learner is None else widen(learner.learner, values))
    return widen(learner, values)


def _row(x: Mapping[Hashable, Any]) -> np.ndarray:
    return read_values(list(x), list(x.values()))


def _matrix(X: pd.DataFrame) -> np.ndarray:
    try:
        values = X.to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"All columns of X must be numbers, but one is not ({error}). Encode it first.") from error
    return check_values(list(X.columns), values)
