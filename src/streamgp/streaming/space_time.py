"""Streams of real targets: a learner of `streamgp.streams` for each output, behind what estimators ask of a learner."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.likelihoods.registry import read_likelihood
from streamgp.streaming.refitting import RefitReport
from streamgp.streaming.settings import StreamSettings
from streamgp.streams import Forecast, StreamLearner, StreamOptions, Ticket
from streamgp.streams.explaining import Explanation, explain
from streamgp.streams.history import HistoryPoint
from streamgp.streams.learner import AnyForecast
from streamgp.streams.merging import merge
from streamgp.streams.refit import Fitted

__all__ = ["ScoredRows", "SpaceTimeLearner", "SpaceTimePrediction", "StreamTicket", "uses_space_time"]


def uses_space_time(settings: StreamSettings) -> bool:
    """Tell whether a stream is learned by this model: real targets, with the default kernel and half-lives."""
    is_gaussian = isinstance(settings.likelihood, str) and read_likelihood(settings.likelihood).is_gaussian
    return is_gaussian and settings.kernel is None and settings.half_life == "auto"


class ScoredRows(NamedTuple):
    """Rows that were learned, and what was said of them before.

    Attributes:
        targets: Targets of all rows.
        num_unpredicted: Number of the first rows, of which nothing was said.
        mean: Means of the others.
        log_density: Log densities of their targets, summed over outputs.
        cumulative: Probabilities of at most their targets.
        leads: How many rows ahead it was said, 0 for the next one.
    """

    targets: Float[np.ndarray, "n o"]
    num_unpredicted: int
    mean: Float[np.ndarray, "k o"]
    log_density: Float[np.ndarray, " k"]
    cumulative: Float[np.ndarray, "k o"]
    leads: Float[np.ndarray, " k"]

    def without_first(self) -> "ScoredRows":
        """Leave out what was said of the first row that was predicted."""
        return ScoredRows(
            self.targets,
            self.num_unpredicted + 1,
            self.mean[1:],
            self.log_density[1:],
            self.cumulative[1:],
            self.leads[1:],
        )


@final
@dataclass(frozen=True, eq=False)
class SpaceTimePrediction:
    """What is expected of rows, in the user's units.

    Attributes:
        forecasts: One for each output.
        is_single_output: Whether there is one output, without an axis of its own.
    """

    forecasts: tuple[Forecast, ...]
    is_single_output: bool = True

    @property
    def mean(self) -> Float[Tensor, "n ..."]:
        """Means of the targets."""
        return self._joined([each.mean for each in self.forecasts])

    @property
    def variance(self) -> Float[Tensor, "n ..."]:
        """Variances of the targets, noise included."""
        return self._joined([each.variance for each in self.forecasts])

    def quantiles(self, probabilities: Any) -> Float[Tensor, "n ... k"]:
        """Return quantiles of the targets."""
        return self._joined([each.quantiles(probabilities) for each in self.forecasts])

    def log_density(self, y: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Return log densities of targets, summed over outputs."""
        lines = np.asarray(y).reshape(len(y), len(self.forecasts)).T
        densities = [each.log_density(line) for each, line in zip(self.forecasts, lines, strict=True)]
        return torch.from_numpy(np.sum(densities, axis=0))

    def _joined(self, parts: Sequence[np.ndarray]) -> Tensor:
        return torch.from_numpy(parts[0] if self.is_single_output else np.stack(parts, axis=1))


@final
@dataclass(frozen=True, eq=False)
class StreamTicket:
    """Rows that were asked for, and whose targets are still to come.

    Attributes:
        tickets: One for each output.
        prediction: What was said of them.
    """

    tickets: tuple[Ticket, ...]
    prediction: SpaceTimePrediction


@final
@dataclass(eq=False)
class SpaceTimeLearner:
    """Learners of the outputs of a stream, which are changed in place.

    Attributes:
        settings: Options.
        learners: One for each output; none before the first row.
        is_single_output: Whether targets have no axis for outputs.
        num_seen: Number of rows learned.
    """

    settings: StreamSettings
    learners: tuple[StreamLearner, ...] = ()
    is_single_output: bool = True
    num_seen: int = 0

    @property
    def num_outside(self) -> int:
        """Number of rows learned so far whose inputs were limited to the range before."""
        return self.learners[0].num_outside if self.learners else 0

    @property
    def is_warm(self) -> bool:
        """Whether there are rows enough to test predictions by."""
        return bool(self.learners) and self.learners[0].num_since_start >= self.settings.warmup

    @property
    def refits(self) -> tuple[RefitReport, ...]:
        """The latest refits of the first output after the warm-up."""
        records = self.learners[0].history.refits if self.learners else ()
        return tuple(RefitReport(each.row, True, each.gain) for each in records if each.row > self.settings.warmup)

    @property
    def kernel(self) -> Kernel:
        """The kernel of the function that was learned, for standardized inputs."""
        return self.learners[0].kernel

    @property
    def lengthscales(self) -> Float[np.ndarray, " d"]:
        """Lengthscales in the user's units."""
        fitted = self._first_fit
        return np.asarray(fitted.prior.lengthscales * fitted.units.input_lengths)

    @property
    def likelihood(self) -> AbstractLikelihood:
        """Gaussian noise, for standardized targets."""
        return Gaussian(self._first_fit.prior.noise_variance)

    @property
    def expert_weights(self) -> dict[str, float]:
        """Weights of the experts for rows such as come of late."""
        return self.learners[0].expert_weights

    @property
    def inducing_points(self) -> Float[np.ndarray, "m d"]:
        """Inducing points in the user's units."""
        fitted, belief = self._first_fit, self.learners[0].belief
        assert belief is not None
        return fitted.units.original_inputs(belief.points[: belief.num_points[0]])

    @property
    def noise_variance(self) -> Float[np.ndarray, " o"]:
        """Variances of the noise in the user's units."""
        return np.array([each.noise_variance for each in self.learners])

    @property
    def history(self) -> tuple[HistoryPoint, ...]:
        """What was known along the stream, of the first output."""
        return self.learners[0].history.points if self.learners else ()

    def predict(
        self,
        X: Float[np.ndarray, "n d"],
        total_count: Float[np.ndarray, " n"] | None = None,
        *,
        horizon: int | np.ndarray = 1,
    ) -> SpaceTimePrediction:
        """Predict rows that are `horizon` rows ahead."""
        self.refuse_counts(total_count)
        if not self.learners:
            raise UnsupportedError("There is nothing to predict from before the first row. Call learn first.")
        return SpaceTimePrediction(
            tuple(each.predict(X, horizon=horizon) for each in self.learners), self.is_single_output
        )

    def learn(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, "n ..."],
        total_count: Float[np.ndarray, " n"] | None = None,
        *,
        weights: Float[np.ndarray, " n"] | None = None,
        on_predicted: Callable[[ScoredRows], None] | None = None,
    ) -> tuple["SpaceTimeLearner", None]:
        """Learn the next rows, in order; returns itself, as other learners return another."""
        targets = self._begin(X, y, total_count)
        noises = None if weights is None else 1.0 / weights
        said = [_Said(len(targets)) for _ in self.learners]
        for output, learner in enumerate(self.learners):
            learner.learn(X, targets[:, output], noises, on_predicted=said[output].note)
        self.num_seen += len(targets)
        if on_predicted is not None:
            on_predicted(_scored(targets, said, np.zeros(len(targets))))
        return self, None

    def learn_unordered(self, X: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n ..."]) -> "SpaceTimeLearner":
        """Learn first rows whose order means nothing."""
        targets = self._begin(X, y, None)
        for output, learner in enumerate(self.learners):
            learner.learn_unordered(X, targets[:, output])
        self.num_seen += len(targets)
        return self

    def expect(self, X: Float[np.ndarray, "n d"]) -> StreamTicket:
        """Predict the next rows, whose targets come later."""
        if not self.learners:
            raise UnsupportedError("There is nothing to expect before the first row. Call partial_fit first.")
        tickets = tuple(each.expect(X) for each in self.learners)
        prediction = SpaceTimePrediction(tuple(_values(each.prediction) for each in tickets), self.is_single_output)
        return StreamTicket(tickets, prediction)

    def learn_ticket(
        self, ticket: StreamTicket, y: Float[np.ndarray, "n ..."], weights: Float[np.ndarray, " n"] | None = None
    ) -> ScoredRows:
        """Learn the targets of rows that were asked for; returns what was said of them then."""
        first = ticket.tickets[0]
        targets = y.reshape(len(y), -1)
        if targets.shape != (len(first.inputs), len(self.learners)):
            raise ShapeError(
                f"y must hold one target for each of the {len(first.inputs)} rows of the ticket and each of the "
                f"{len(self.learners)} outputs, but has shape {y.shape}."
            )
        noises = None if weights is None else 1.0 / weights
        said = [_Said(len(targets)) for _ in self.learners]
        for output, learner in enumerate(self.learners):
            learner.learn_ticket(ticket.tickets[output], targets[:, output], noises, on_predicted=said[output].note)
        self.num_seen += len(targets)
        return _scored(targets, said, first.leads.astype(float))

    def explain(self, X: Float[np.ndarray, "n d"]) -> tuple[Explanation, ...]:
        """Return which experts say what of rows, by the first output."""
        return explain(self.learners[0], X)

    def sample(
        self, X: Float[np.ndarray, "n d"], num_samples: int, rng: np.random.Generator, *, latent: bool
    ) -> Float[np.ndarray, "s n ..."]:
        """Draw targets, or functions, for all rows together."""
        draws = [each.sample(X, num_samples, rng, latent=latent) for each in self.learners]
        return draws[0] if self.is_single_output else np.stack(draws, axis=-1)

    @staticmethod
    def merged(learners: "Sequence[SpaceTimeLearner]", base: "SpaceTimeLearner | None") -> "SpaceTimeLearner":
        """Return a learner that knows the rows of all; those of the base count once."""
        parts = [each.learners for each in learners]
        bases = [None] * len(parts[0]) if base is None else list(base.learners)
        if {len(each) for each in parts} != {len(bases)}:
            raise OptionError("The models have different numbers of outputs. Merge models of one stream.")
        merged = tuple(merge(each, start) for *each, start in zip(*parts, bases, strict=True))
        return SpaceTimeLearner(learners[0].settings, merged, learners[0].is_single_output, merged[0].num_seen)

    def widened(self, values: Float[np.ndarray, " k"]) -> "SpaceTimeLearner":
        """Add input columns, in which the rows so far had these values, and learn these anew."""
        self.learners = tuple(each.widened(values) for each in self.learners)
        return self

    def reset(self) -> "SpaceTimeLearner":
        """Forget what the rows said, and keep units, hyperparameters and points."""
        for each in self.learners:
            each.reset()
        return self

    def rewarm(self) -> "SpaceTimeLearner":
        """Begin again with the next row."""
        for each in self.learners:
            each.rewarm()
        return self

    @property
    def _first_fit(self) -> Fitted:
        fitted = self.learners[0].fitted
        assert fitted is not None
        return fitted

    def _begin(
        self, X: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n ..."], total_count: Float[np.ndarray, " n"] | None
    ) -> Float[np.ndarray, "n o"]:
        """Check rows, make the learners before the first, and return targets with an axis for outputs."""
        self.refuse_counts(total_count)
        y = np.asarray(y, dtype=np.float64)
        targets = y.reshape(len(y), -1)
        if not np.isfinite(y).all() and (y.ndim == 1 or np.isinf(y).any()):
            raise ValueRangeError(
                f"y must be finite, but holds {y[~np.isfinite(y)][0]:g}. Leave out rows without a target; NaN may "
                "stand for some of several targets."
            )
        if not self.learners:
            self.is_single_output = y.ndim == 1
            self.learners = tuple(StreamLearner(X.shape[1], _options(self.settings)) for _ in range(targets.shape[1]))
        elif targets.shape[1] != len(self.learners) or (y.ndim == 1) != self.is_single_output:
            expected = "(n,)" if self.is_single_output else f"(n, {len(self.learners)})"
            raise ShapeError(f"y must have shape {expected}, as the rows before, but has shape {y.shape}.")
        return targets

    def refuse_counts(self, total_count: Float[np.ndarray, " n"] | None) -> None:
        """Refuse numbers of trials, which binomial targets have."""
        if total_count is not None:
            raise OptionError(
                "total_count holds numbers of trials, but the likelihood is 'gaussian'. Leave it out, or choose "
                "likelihood='binomial'."
            )


def _values(forecast: AnyForecast) -> Forecast:
    assert isinstance(forecast, Forecast)
    return forecast


@final
class _Said:
    """What was said of the rows of one output."""

    def __init__(self, num_rows: int) -> None:
        self.first = num_rows
        self.parts: list[tuple[np.ndarray, Forecast]] = []

    def note(self, rows: np.ndarray, forecast: Forecast) -> None:
        self.first = min(self.first, int(rows[0]))
        self.parts.append((rows, forecast))


def _scored(targets: Float[np.ndarray, "n o"], said: Sequence[_Said], leads: Float[np.ndarray, " n"]) -> ScoredRows:
    """Return what was said of rows; those of which a target is missing do not count."""
    n, num_outputs = targets.shape
    mean, density, cumulative = (np.full((n, num_outputs), np.nan) for _ in range(3))
    for output, each in enumerate(said):
        for rows, forecast in each.parts:
            y = targets[rows, output]
            mean[rows, output] = forecast.mean
            density[rows, output] = forecast.log_density(y)
            cumulative[rows, output] = forecast.cumulative(y)
    known = np.isfinite(targets).all(1)
    first = max(each.first for each in said)
    chosen = known & (np.arange(n) >= first)
    return ScoredRows(
        targets[known],
        int((known & ~chosen).sum()),
        mean[chosen],
        density[chosen].sum(1),
        np.clip(cumulative[chosen], 0.0, 1.0),
        leads[chosen],
    )


def _options(settings: StreamSettings) -> StreamOptions:
    points = settings.num_inducing if isinstance(settings.num_inducing, int) else settings.max_inducing
    return StreamOptions(
        most_points=points,
        buffer_size=max(settings.buffer_size, settings.warmup),
        refit=settings.refit,
        warmup=settings.warmup,
    )
