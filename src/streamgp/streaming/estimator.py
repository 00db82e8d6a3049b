"""What the scikit-learn estimators of streams share."""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Generic, TypeVar, final

import numpy as np
import torch
from gpytorch.kernels import Kernel
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from streamgp.display import html_table
from streamgp.errors import ArgumentTypeError, StreamGPWarning
from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites import SiteRule
from streamgp.storage import save
from streamgp.streaming.drift import DriftWatch
from streamgp.streaming.learner import StreamLearner
from streamgp.streaming.model import StreamModel
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.refitting import RefitReport
from streamgp.streaming.report import ScoreReport
from streamgp.streaming.scoring import ClassScore, ValueScore
from streamgp.streaming.settings import SITE_TOLERANCE, StreamSettings
from streamgp.streaming.space_time import SpaceTimeLearner
from streamgp.streams.locks import lock_of
from streamgp.streams.reading import Batch, read_batch, read_matrix

__all__ = ["AbstractStreamingEstimator", "EstimatorState", "Learner", "generator_of", "refuse_options"]

# With a drift detector, rows that are predicted, tested and learned together.
_MOST_ROWS_TESTED = 64

Learner = TypeVar("Learner", StreamLearner, OneVsRest, StreamLearner | SpaceTimeLearner)


@final
class BankFacts:
    """What can be said of the model of a bank of experts."""

    def __init__(self, model: StreamModel) -> None:
        self.model = model
        self.kernel = model.bank.process.prior.kernel
        self.likelihood = model.likelihood
        self.expert_weights = dict(zip(model.bank.experts.each, model.mixture.weights.tolist(), strict=True))
        self.inducing_points = model.inducing_points.numpy()

    @property
    def lengthscales(self) -> np.ndarray:
        """Lengthscales in the user's units; NaN where the kernel has none."""
        lengthscale = getattr(getattr(self.kernel, "base_kernel", self.kernel), "lengthscale", None)
        lengths = self.model.units.input_lengths
        if lengthscale is None:
            return np.full(len(lengths), np.nan)
        return (lengthscale.detach().reshape(-1)[: len(lengths)] * lengths).numpy()

    @property
    def noise_variance(self) -> np.ndarray:
        """Variances of Gaussian noise in the user's units, one for each output; NaN for other likelihoods."""
        variance = self.model.likelihood.gaussian_noise_variance
        scale = self.model.units.target_scale.square().reshape(-1).numpy()
        return np.full(len(scale), np.nan) if variance is None else (variance.reshape(-1).numpy() * scale)


@final
@dataclass(frozen=True, eq=False)
class EstimatorState(Generic[Learner]):
    """All that an estimator has learned, as one value.

    Attributes:
        learner: What is known of the stream.
        watch: Detector of changes; None if there is none.
        score: How good predictions of rows were before they were learned; None before the first.
    """

    learner: Learner
    watch: DriftWatch | None = None
    score: ValueScore | ClassScore | None = None


class AbstractStreamingEstimator(BaseEstimator, ABC, Generic[Learner]):
    """A scikit-learn estimator around a frozen state, which is replaced when a step has succeeded."""

    state_: EstimatorState[Learner]

    # The types of these are checked when they are used, as scikit-learn asks for.
    def __init__(
        self,
        *,
        kernel: Any,
        num_inducing: Any,
        max_inducing: Any,
        warmup: Any,
        refit: Any,
        buffer_size: Any,
        half_life: Any,
        sites: Any,
        drift_detector: Any,
        on_drift: Any,
        random_state: Any,
    ) -> None:
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
        self.random_state = random_state

    @property
    def num_seen_(self) -> int:
        """Number of rows learned so far."""
        return self._learner.num_seen

    @property
    def num_outside_(self) -> int:
        """Inputs so far that lay far outside the range of the warm-up, whose scaling they got."""
        return self._learner.num_outside

    @property
    def num_drifts_(self) -> int:
        """Changes so far that the drift detector found and that were acted upon."""
        check_is_fitted(self, "state_")
        return 0 if self.state_.watch is None else self.state_.watch.num_drifts

    @property
    def refits_(self) -> tuple[RefitReport, ...]:
        """The latest refits: at which row, whether the result was kept, and why if not."""
        return self._learner.refits

    @property
    def kernel_(self) -> Kernel:
        """The kernel that was learned, for standardized inputs."""
        return self._facts.kernel

    @property
    def lengthscales_(self) -> np.ndarray:
        """Lengthscales of the inputs `(d,)`, in the units of the user; NaN where the kernel has none.

        For inputs with long tails, which are bent, they are those around the middle.
        """
        return self._facts.lengthscales

    @property
    def likelihood_(self) -> AbstractLikelihood:
        """The likelihood that was learned, for standardized targets where the likelihood was given by name."""
        return self._facts.likelihood

    @property
    def expert_weights_(self) -> dict[Any, float]:
        """How far each of the experts is believed, by what it expects of the stream."""
        return self._facts.expert_weights

    @property
    def inducing_points_(self) -> np.ndarray:
        """Inputs `(m, d)` at which the beliefs are held, in the units of the user."""
        return self._facts.inducing_points

    @property
    @abstractmethod
    def _facts(self) -> BankFacts | SpaceTimeLearner:
        """What can be said of the model of the stream."""

    def __copy__(self) -> Any:
        """Copy with a state of its own, as a stream of real targets is learned in place."""
        return deepcopy(self)

    @property
    def _learner(self) -> Learner:
        check_is_fitted(self, "state_")
        return self.state_.learner

    def score_report(self) -> ScoreReport:
        """How good the rows of `partial_fit` were predicted, each before it was learned, beside naive baselines.

        Rows of `fit` have no order, and do not count.
        """
        check_is_fitted(self, "state_")
        return ScoreReport(self.state_.score or self._no_score())

    def merge(self, others: Sequence[Any], *, base: Any = None) -> Any:
        """Merge with models that learned other rows, without these, into a new one that knows all of them.

        Beliefs add, so that with the same inducing points the result is that of learning all rows side by side. All
        models need the same units, hyperparameters and classes: let them begin as copies of one model after its
        warm-up, with `refit="never"`. The score report is that of this model.

        Args:
            others: The other models; they stay as they are.
            base: The model of which all are copies, whose rows then count once. Without it, rows that several models
                learned count several times.

        Raises:
            OptionError: If the models are not about the same thing.
        """
        models = [self, *others, *([] if base is None else [base])]
        wrong = [type(model).__name__ for model in models if not isinstance(model, type(self))]
        if wrong:
            raise ArgumentTypeError(f"merge takes a list of {type(self).__name__}, but got {', '.join(wrong)}.")
        learners = [model._learner for model in models]
        learner = self._merged(learners[: len(others) + 1], None if base is None else learners[-1])
        merged = clone(self)
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(merged, name, value)
        merged.state_ = replace(self.state_, learner=learner)
        return merged

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads: arrays and a JSON description, no pickle; atomically.

        The estimator that is read goes on as if it had never been saved. A drift detector cannot be saved.
        """
        import_module("streamgp.streaming.saving")  # which imports this one
        save(self, path)

    def _repr_html_(self) -> str:
        """What was learned as a small table, instead of scikit-learn's diagram."""
        facts: dict[str, Any] = {
            name: value for name, value in self.get_params(deep=False).items() if value is not None
        }
        kind: Any = type(self)
        default = kind().get_params(deep=False)
        facts = {name: value for name, value in facts.items() if not _is_same(value, default[name])}
        if self._is_started and self.state_.learner.num_seen:
            report = self.score_report()
            facts |= {"rows learned": self.num_seen_, "input columns": self.n_features_in_}
            facts |= {"inducing points": len(self.inducing_points_), "rows predicted before": report.num_rows}
            facts |= report.metrics if report.num_rows else {}
        else:
            facts["rows learned"] = 0
        return html_table(type(self).__name__, facts)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @abstractmethod
    def _likelihood(self) -> Any:
        """Name or object of the likelihood."""

    @staticmethod
    @abstractmethod
    def _merged(learners: Sequence[Learner], base: Learner | None) -> Learner:
        """A learner that knows the rows of all."""

    @abstractmethod
    def _start(self, settings: StreamSettings) -> Learner:
        """A learner before the first row."""

    @abstractmethod
    def _learned_unordered(self, settings: StreamSettings, batch: Batch) -> Learner:
        """A learner after rows whose order means nothing."""

    @abstractmethod
    def _learned(self, state: EstimatorState[Learner], batch: Batch) -> EstimatorState[Learner]:
        """The state after more rows."""

    @abstractmethod
    def _no_score(self) -> ValueScore | ClassScore:
        """The score before the first row."""

    @abstractmethod
    def _errors(self, learner: Learner, batch: Batch) -> list[float]:
        """How wrong the predictions of rows are, for the drift detector."""

    def _fit_rows(self, batch: Batch) -> None:
        """Forget everything, and learn from rows in random order."""
        rng = check_random_state(self.random_state)
        settings, watch = self._settings(rng), self._new_watch()
        learner = self._learned_unordered(settings, batch.take(rng.permutation(len(batch.targets))))
        self._replace_state(EstimatorState(learner, watch), num_outside_before=0)

    def _learn_rows(self, state: EstimatorState[Learner], batch: Batch) -> None:
        """Learn from the next rows of the stream."""
        num_outside = state.learner.num_outside
        learned = self._learned(state, batch) if state.watch is None else self._watched(state, state.watch, batch)
        self._replace_state(learned, num_outside_before=num_outside)

    def _state_so_far(self) -> EstimatorState[Learner]:
        """The state, or a new one before the first row."""
        if self._is_started:
            return self.state_
        return EstimatorState(self._start(self._settings(check_random_state(self.random_state))), self._new_watch())

    @property
    def _is_started(self) -> bool:
        return "state_" in vars(self)

    def _watched(self, state: EstimatorState[Learner], watch: DriftWatch, batch: Batch) -> EstimatorState[Learner]:
        """Predict rows, test the errors, and only then learn them.

        What is left of a part in which a change was found is learned by the new model without a test.
        """
        for start in range(0, len(batch.targets), _MOST_ROWS_TESTED):
            part = batch.take(slice(start, start + _MOST_ROWS_TESTED))
            if state.learner.is_warm:
                watch, change = watch.inspect(self._errors(state.learner, part))
                if change is not None:
                    state = self._learned(state, part.take(slice(0, change)))
                    learner = state.learner.reset() if watch.action == "reset" else state.learner.rewarm()
                    state, part = replace(state, learner=learner), part.take(slice(change, None))
            state = self._learned(state, part)
        return replace(state, watch=watch)

    def _replace_state(self, state: EstimatorState[Learner], *, num_outside_before: int) -> None:
        self.state_ = state
        if state.learner.num_outside and not num_outside_before:
            warnings.warn(
                f"{state.learner.num_outside} of {state.learner.num_seen} inputs lie far outside the range of the "
                "warm-up, whose units they are scaled by, and are predicted from afar. This is said once; num_outside_ "
                "counts on. If the stream has moved on, pass a drift_detector, or a larger warmup.",
                StreamGPWarning,
                stacklevel=4,
            )

    def _settings(self, rng: np.random.RandomState) -> StreamSettings:
        return StreamSettings(
            likelihood=self._likelihood(),
            kernel=self.kernel,
            num_inducing=_plain(self.num_inducing),
            max_inducing=_plain(self.max_inducing),
            warmup=_plain(self.warmup),
            refit=_plain(self.refit),
            buffer_size=_plain(self.buffer_size),
            half_life=_plain(self.half_life),
            sites=self.sites if isinstance(self.sites, SiteRule) else SiteRule(self.sites, tolerance=SITE_TOLERANCE),
            seed=int(rng.randint(2**31 - 1)),
        )

    def _new_watch(self) -> DriftWatch | None:
        return None if self.drift_detector is None else DriftWatch.start(self.drift_detector, self.on_drift)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave no trace of a step that fails, not even the names of its features; one step at a time."""
        with lock_of(self):
            before = dict(self.__dict__)
            try:
                yield
            except BaseException:
                self.__dict__.clear()
                self.__dict__.update(before)
                raise

    def _read_inputs(self, X: Any) -> np.ndarray:
        """Check inputs to predict at."""
        check_is_fitted(self, "state_")
        return read_matrix(self, X)

    def _read_rows(self, X: Any, y: Any, *, reset: bool, is_numeric: bool) -> Batch:
        """Check inputs and targets to learn from, or to compare with."""
        return read_batch(self, X, y, reset=reset, is_numeric=is_numeric)


def refuse_options(options: Mapping[str, Any]) -> None:
    """Refuse what scikit-learn passes on to a fit by name, weights of rows above all.

    They are no arguments of their own, by which scikit-learn's ensembles would find that weights are supported.
    """
    if options:
        raise ArgumentTypeError(
            f"A fit takes no {', '.join(sorted(options))}: all rows count alike. Leave it out; a row that is to count "
            "twice can be there twice."
        )


def generator_of(random_state: Any) -> torch.Generator:
    """A generator of torch, seeded by what scikit-learn takes for randomness."""
    return torch.Generator().manual_seed(int(check_random_state(random_state).randint(2**31 - 1)))


def _is_same(value: Any, default: Any) -> bool:
    """Whether an option was left as it is; objects are never compared."""
    return value is default or (
        isinstance(value, str | int | float) and type(value) is type(default) and value == default
    )


def _plain(value: Any) -> Any:
    """Python's own number for one of NumPy, as grids of options hold."""
    return value.item() if isinstance(value, np.generic) else value
