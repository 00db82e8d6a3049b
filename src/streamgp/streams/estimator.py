"""Base of the scikit-learn estimators of streams."""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from gpytorch.kernels import Kernel
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from streamgp.display import html_table
from streamgp.errors import ArgumentTypeError, OptionError, StreamGPWarning
from streamgp.likelihoods import AbstractLikelihood
from streamgp.storage import save
from streamgp.streams.drift import DriftWatch
from streamgp.streams.explaining import Explanation
from streamgp.streams.history import HistoryPoint, RefitRecord
from streamgp.streams.learner import StreamLearner
from streamgp.streams.locks import lock_of
from streamgp.streams.model import StreamModel, StreamTicket
from streamgp.streams.options import StreamOptions
from streamgp.streams.reading import Batch, read_matrix, read_total_count
from streamgp.streams.report import ScoreReport, draw_history

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AbstractStreamEstimator", "read_output"]


class AbstractStreamEstimator(BaseEstimator, ABC):
    """A scikit-learn estimator around a model of a stream."""

    state_: StreamModel
    _is_label: bool

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
        self.drift_detector = drift_detector
        self.on_drift = on_drift
        self.random_state = random_state

    @property
    def num_seen_(self) -> int:
        """Number of rows learned so far."""
        return self._model.num_seen

    @property
    def num_outside_(self) -> int:
        """Number of rows so far that lay far outside the range of all rows before them."""
        return self._first.num_outside

    @property
    def num_drifts_(self) -> int:
        """Number of changes that the drift detector found and that were acted upon."""
        return self._model.num_drifts

    @property
    def is_refitting_(self) -> bool:
        """True while a refit runs in the background."""
        return self._model.is_refitting

    @property
    def refits_(self) -> tuple[RefitRecord, ...]:
        """The latest refits: at which row, how much was gained, how long it took, and how many points there are."""
        return self._first.history.refits

    @property
    def history_(self) -> tuple[HistoryPoint, ...]:
        """Course of the stream: weights of experts, scale of the noise, points; in bounded memory."""
        return self._first.history.points

    @property
    def kernel_(self) -> Kernel:
        """The kernel that was learned, for standardized inputs."""
        return self._first.kernel

    @property
    def lengthscales_(self) -> np.ndarray:
        """Lengthscales of the inputs `(d,)`, in the units of the user.

        For inputs with long tails, which are bent, they are those around the middle.
        """
        fitted = self._first.fitted
        assert fitted is not None
        units, lengths = fitted.units.input_lengths, fitted.prior.lengthscales
        if not len(lengths):  # a kernel of the user's own
            found = getattr(getattr(self.kernel_, "base_kernel", self.kernel_), "lengthscale", None)
            lengths = np.full(len(units), np.nan) if found is None else found.detach().numpy().reshape(-1)
        return np.asarray(lengths * units)

    @property
    def likelihood_(self) -> AbstractLikelihood:
        """The likelihood that was learned, for standardized targets where it is that of real targets by name."""
        return self._first.likelihood

    @property
    def expert_weights_(self) -> dict[str, float]:
        """Weights of the experts for rows such as come of late."""
        learner = self._first
        assert learner.belief is not None
        return dict(zip(learner.expert_names, np.exp(learner.belief.near).sum(1).tolist(), strict=True))

    @property
    def inducing_points_(self) -> np.ndarray:
        """Inputs `(m, d)` at which the beliefs are held, in the units of the user."""
        fitted, belief = self._first.fitted, self._first.belief
        assert fitted is not None
        assert belief is not None
        return fitted.units.original_inputs(belief.points[: belief.num_points[0]])

    def __copy__(self) -> Any:
        """Copy with a state of its own, as a stream is learned in place."""
        return deepcopy(self)

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_started and self.state_.num_seen > 0

    def expect(self, X: Any, total_count: Any = None) -> StreamTicket:
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
            total_count: Numbers of trials, for `likelihood="binomial"`.

        Returns:
            A ticket, whose `prediction` has what was said.
        """
        inputs = self._read_inputs(X)
        with lock_of(self):
            return self._model.expect(inputs, read_total_count(total_count, len(inputs)))

    def explain(self, X: Any) -> tuple[Explanation, ...]:
        """Say why rows are predicted as they are: the experts in words with their weights, and the nearest rows.

        Args:
            X: Inputs `(n, d)`.

        Returns:
            For each row an explanation, which prints as a table.
        """
        inputs = self._read_inputs(X)
        with lock_of(self):
            return self._model.explain(inputs)

    def score_report(self) -> ScoreReport:
        """Return how well the rows of `partial_fit` were predicted, each before it was learned, beside baselines.

        Rows of `fit` have no order, and do not count.
        """
        return ScoreReport(self._model.score.copied())

    def plot_history(self) -> "Figure":
        """Draw the latest predictions with intervals and what came, the running error, weights, points and refits."""
        learner = self._first
        return draw_history(self._model.score, learner.history.points, learner.history.refits, learner.expert_names)

    def set_refit(self, refit: Any) -> Any:
        """Change when hyperparameters are learned again, from now on: `"background"` for a stream in service."""
        changed = clone(self).set_params(refit=refit)._options()
        if self._is_started:
            with lock_of(self):
                self.state_.set_refit(changed.refit)
        self.refit = refit
        return self

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
        states = [model._model for model in models]
        state = StreamModel.merged(states[: len(others) + 1], None if base is None else states[-1])
        merged = clone(self)
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(merged, name, value)
        merged.state_ = state
        return merged

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads: arrays and a JSON description, no pickle; atomically.

        The estimator that is read goes on as if it had never been saved. A drift detector is saved if it was given by
        name.
        """
        import_module("streamgp.streams.saving")  # which imports this one
        save(self, path)

    def _repr_html_(self) -> str:
        """Show what was learned as a small table, instead of scikit-learn's diagram."""
        kind: Any = type(self)
        default = kind().get_params(deep=False)
        facts: dict[str, Any] = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if value is not None and not _is_same(value, default[name])
        }
        facts["rows learned"] = 0
        if self.__sklearn_is_fitted__():
            report = self.score_report()
            facts |= {"rows learned": self.num_seen_, "input columns": self.n_features_in_}
            facts |= {"inducing points": len(self.inducing_points_), "rows predicted before": report.num_rows}
            facts |= report.metrics if report.num_rows else {}
        return html_table(type(self).__name__, facts)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @abstractmethod
    def _options(self) -> StreamOptions:
        """Return the options of learners."""

    @property
    def _model(self) -> StreamModel:
        check_is_fitted(self)
        return self.state_

    @property
    def _first(self) -> StreamLearner:
        return self._model.first

    @property
    def _is_started(self) -> bool:
        return "state_" in vars(self)

    def _new_model(self) -> StreamModel:
        """Return a model that has seen nothing."""
        detector, is_label = self.drift_detector, self._is_label
        watch = None if detector is None else DriftWatch(detector, self.on_drift, is_label=is_label)
        return StreamModel.begin(self._options(), is_label=is_label, watch=watch)

    def _fit_rows(self, batch: Batch) -> None:
        """Forget everything, and learn from rows in random order."""
        model = self._new_model()
        batch = batch.take(check_random_state(self.random_state).permutation(len(batch.targets)))
        model.learn_unordered(batch.inputs, batch.targets, batch.total_count, num_inducing=_plain(self.num_inducing))
        self.state_ = model

    def _learn_rows(self, model: StreamModel, batch: Batch) -> None:
        """Learn the next rows of the stream."""
        before = model.first.num_outside if model.num_seen else 0
        model.learn(batch.inputs, batch.targets, batch.total_count, weights=batch.weights)
        self.state_ = model
        if not before and model.first.num_outside:
            warnings.warn(
                f"{model.first.num_outside} of {model.num_seen} rows lie outside the range of all rows before them by "
                "more than its width, and are predicted as at that distance. This is said once; num_outside_ counts "
                "on. Look for slips of the pen; if the stream jumps, pass a drift_detector.",
                StreamGPWarning,
                stacklevel=4,
            )

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
        check_is_fitted(self)
        return read_matrix(self, X)


def refuse_options(options: Mapping[str, Any]) -> None:
    """Refuse what scikit-learn passes on to a fit by name, weights of rows above all.

    They are no arguments of their own, by which scikit-learn's ensembles would find that weights are supported.
    """
    if options:
        raise ArgumentTypeError(
            f"A fit takes no {', '.join(sorted(options))}: all rows count alike. Leave it out; a row that is to count "
            "twice can be there twice."
        )


def read_output(output: str, X: Any) -> tuple[bool, Any]:
    """Tell whether a table is asked for, and which index it has."""
    if output not in ("array", "frame"):
        raise OptionError(f"output must be 'array' or 'frame', but is {output!r}.")
    return output == "frame", getattr(X, "index", None) if hasattr(X, "iloc") else None


def _is_same(value: Any, default: Any) -> bool:
    """Tell whether an option was left as it is; objects are never compared."""
    return value is default or (
        isinstance(value, str | int | float) and type(value) is type(default) and value == default
    )


def _plain(value: Any) -> Any:
    """Return Python's own number for one of NumPy."""
    return value.item() if isinstance(value, np.generic) else value
