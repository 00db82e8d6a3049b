"""A stream that is predicted and learned row by row, in constant time and memory."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import gpytorch
import numpy as np
import torch
from jaxtyping import Float, Int

from streamgp.errors import OptionError, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.streams.buffer import Buffer
from streamgp.streams.classes import Sureness, with_questions
from streamgp.streams.history import History
from streamgp.streams.kernels import to_module
from streamgp.streams.latent_forecasts import ClassForecast, LatentForecast
from streamgp.streams.observing import Observing, with_counts
from streamgp.streams.options import StreamOptions
from streamgp.streams.points import is_moving, slack_of
from streamgp.streams.predictive import Forecast
from streamgp.streams.refit import BackgroundRefit, Fitted, Refit, Snapshot, refit, replay
from streamgp.streams.rows import learn_rows, predict_rows
from streamgp.streams.sampling import choose_part, latent_covariances, sample_latents
from streamgp.streams.schedule import FEW_ROWS, Schedule
from streamgp.streams.state import Belief, Dynamics, Said, empty_said

__all__ = ["AnyForecast", "StreamLearner", "Ticket"]

# Nats that rows leave open for want of points before it is asked whether points should move, at first and at most;
# larger asks less often.
_LEAST_OPEN, _MOST_OPEN = 2.0, 128.0
# Rows from which on refits may run in the background; earlier ones take a few milliseconds.
_FIRST_IN_BACKGROUND = 20
# Rows that a call learns again when a refit in the background is there; larger makes that call longer.
_MOST_BEHIND = 32
# Rows that are learned in one call of the compiled functions.
_CHUNK = 64

AnyForecast = Forecast | LatentForecast | ClassForecast
OnPredicted = Callable[[Int[np.ndarray, " r"], Any], None]


@final
@dataclass(frozen=True, eq=False)
class Ticket:
    """Rows that were asked for and whose targets are still to come.

    Attributes:
        inputs: The rows.
        times: When they were, counted in rows.
        leads: Rows whose targets were still to come when it was asked.
        prediction: What was said.
        counts: Numbers of trials or exposures; ones for targets that have none.
    """

    inputs: Float[np.ndarray, "n d"]
    times: Int[np.ndarray, " n"]
    leads: Int[np.ndarray, " n"]
    prediction: AnyForecast
    counts: Float[np.ndarray, " n"]


class _Given(NamedTuple):
    """Rows as they are given: inputs, targets, numbers of trials, variances of the noise, and when they were."""

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, " n"]
    counts: Float[np.ndarray, " n"]
    noises: Float[np.ndarray, " n"]
    times: Int[np.ndarray, " n"]


@final
class StreamLearner:
    """State of a stream of one target, or of labels; changed in place, row by row.

    Rows are learned in order, so that many in one call give what they give one by one. Refits learn units,
    hyperparameters and points anew, and replay the rows of the buffer; weights of experts stay as they were earned by
    predictions of rows that had not been seen. What rows said that have left the buffer is carried as a belief.

    Labels are numbers of classes, from zero on. More classes than are known have to be announced by `with_classes`.

    Attributes:
        options: Options; those of the refits may be replaced at any time.
        plan: What the stream is learned with.
        buffer: The latest rows.
        fitted: Units and hyperparameters; None before the first row.
        belief: What all filters know; None before the first row.
        clock: Number of rows so far that were learned or asked for.
        num_seen: Number of rows learned.
        lower: Least inputs so far.
        upper: Largest inputs so far.
        num_outside: Number of rows learned whose inputs lay farther outside that range than it is wide.
        history: What became of weights, scale and points, and of refits.
    """

    def __init__(self, num_dims: int, options: StreamOptions | None = None, *, num_classes: int = 0) -> None:
        self.options = options or StreamOptions()
        self.plan = self.options.plan(num_classes)
        self.sureness = Sureness.new(num_classes)
        self.buffer = Buffer.empty(num_dims)
        self.fitted: Fitted | None = None
        self.dynamics: Dynamics | None = None
        self.belief: Belief | None = None
        self.anchor: Snapshot | None = None
        self.halfway: Snapshot | None = None
        self.num_halfway = 0
        self.lower = np.full(num_dims, np.inf)
        self.upper = np.full(num_dims, -np.inf)
        self.num_outside = 0
        self.clock = 0
        self.num_seen = 0
        self.num_since_start = 0
        self.schedule = Schedule()
        self.moves = False
        self.patience = self.most_open = _LEAST_OPEN
        self.history = History()
        self._job: BackgroundRefit | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Finish a refit that runs in the background, so that copies and files hold its result."""
        self.finish()
        return self.__dict__.copy()

    @property
    def num_dims(self) -> int:
        """Number of input columns."""
        return int(self.buffer.inputs.shape[1])

    @property
    def num_classes(self) -> int:
        """Number of classes; zero for other targets."""
        return self.plan.num_classes

    @property
    def is_refitting(self) -> bool:
        """Tell whether a refit runs in the background."""
        return self._job is not None and not self._job.is_done

    @property
    def expert_names(self) -> tuple[str, ...]:
        """Names of the experts."""
        return tuple(each.name for each in self.plan.experts)

    @property
    def expert_weights(self) -> dict[str, float]:
        """Weights of the experts for rows such as come of late."""
        _, belief, _ = self._started
        return dict(zip(self.expert_names, np.exp(belief.near).sum(1).tolist(), strict=True))

    @property
    def kernel(self) -> gpytorch.kernels.Kernel:
        """The kernel of the function that was learned, for standardized inputs."""
        prior = self._started[0].prior
        return to_module(prior.stream_kernel, prior.function_variance)

    @property
    def likelihood(self) -> AbstractLikelihood:
        """The likelihood that was learned, for standardized targets where these are standardized."""
        fitted = self._started[0]
        return Gaussian(fitted.prior.noise_variance) if fitted.observing is None else fitted.observing.likelihood

    def predict(
        self,
        X: Float[np.ndarray, "n d"],
        *,
        horizon: int | Int[np.ndarray, " n"] = 1,
        total_count: Float[np.ndarray, " n"] | None = None,
    ) -> Any:
        """Predict rows that are `horizon` rows ahead, 1 for the next row.

        Args:
            X: Inputs.
            horizon: How many rows ahead they are.
            total_count: Numbers of trials or exposures of likelihoods that have them.
        """
        times = np.broadcast_to(np.asarray(self.clock - 1 + horizon, dtype=np.int64), (len(X),)).copy()
        return self._forecast(X, times, self._counts(total_count, len(X)))

    def learn(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        noises: Float[np.ndarray, " n"] | None = None,
        *,
        total_count: Float[np.ndarray, " n"] | None = None,
        on_predicted: OnPredicted | None = None,
    ) -> None:
        """Learn the next rows, in order.

        Args:
            X: Inputs.
            y: Targets; rows where they are NaN pass without being learned.
            noises: Variances of the noise in units of what is usual, one over the weights of the rows. Densities of
                other likelihoods are raised to the power of the weights.
            total_count: Numbers of trials or exposures of likelihoods that have them.
            on_predicted: Is shown, part by part, which rows these are and what was said of them before.
        """
        counts = self._counts(total_count, len(y))
        y = self._checked(y, counts)
        times = self.clock + np.arange(len(y))
        self.clock += len(y)
        self._learn(_Given(X, y, counts, np.ones(len(y)) if noises is None else noises, times), None, on_predicted)

    @property
    def noise_variance(self) -> float:
        """Variance of the noise in the user's units, as the experts see it of late; of a site for other likelihoods."""
        fitted, belief, _ = self._started
        if fitted.observing is not None:
            return float(fitted.prior.noise_variance * fitted.units.target_scale**2)
        variance = (np.exp(belief.near) * belief.rate / belief.shape).sum()
        return float(variance * fitted.units.target_scale**2)

    def slack(self, scaled: Float[np.ndarray, "n d"]) -> float:
        """Return the largest share of the function's variance that points leave open at standardized inputs."""
        _, belief, dynamics = self._started
        p = belief.num_points[0]
        slack = slack_of(scaled, belief.points[:p], belief.whitening[:p, :p], dynamics.kernel)
        return float((slack / np.maximum(dynamics.kernel.diagonal(scaled), 1e-300)).max())

    def covariance(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
        """Return the joint covariance of real targets, noise on the diagonal."""
        fitted, belief, _ = self._started
        if fitted.observing is not None:
            raise UnsupportedError("Joint covariances are those of real targets with Gaussian noise. Use sample.")
        forecast = self.predict(X)
        latents = latent_covariances(fitted.units.inputs(X), self.clock - int(belief.clock[0]), belief, fitted)
        weight = forecast.weight.mean(0)
        degrees = np.maximum(forecast.degrees[0], 3.0)
        scale = fitted.units.target_scale**2 * (belief.rate / belief.shape).ravel() * degrees / (degrees - 2.0)
        parts = np.repeat(latents + np.eye(len(X)), belief.shape.shape[1], axis=0)
        apart = forecast.location - (forecast.location @ weight)[:, None]
        return np.asarray(np.tensordot(weight * scale, parts, 1) + (weight * apart) @ apart.T)

    def sample(
        self,
        X: Float[np.ndarray, "n d"],
        num_samples: int,
        rng: np.random.Generator,
        *,
        latent: bool = False,
        total_count: Float[np.ndarray, " n"] | None = None,
    ) -> Float[np.ndarray, "s n ..."]:
        """Draw targets, or functions without the noise, for all rows together, each of one expert where it can be.

        Of classes, probabilities are drawn.

        Args:
            X: Inputs.
            num_samples: Number of draws.
            rng: Source of randomness.
            latent: Leave out the noise.
            total_count: Numbers of trials or exposures of likelihoods that have them.
        """
        forecast = self.predict(X, total_count=total_count)
        fitted, belief, _ = self._started
        units, observing, n = fitted.units, fitted.observing, len(X)
        latents = latent_covariances(units.inputs(self._limited(X)), self.clock - int(belief.clock[0]), belief, fitted)
        normal = sample_latents(latents, num_samples, rng)
        if observing is None:
            tails = belief.shape.shape[1]
            noise = 0.0 if latent else rng.standard_normal((num_samples, n, len(latents)))
            degrees = forecast.degrees[0]
            scale = units.target_scale * np.sqrt((belief.rate / belief.shape).ravel())
            spread = scale / np.sqrt(rng.chisquare(degrees, (num_samples, 1, len(degrees))) / degrees)
            draws = forecast.location + spread * np.repeat(normal + noise, tails, axis=-1)
            return choose_part(draws, forecast.weight, rng)
        draws, generator = forecast.location + normal, torch.Generator().manual_seed(int(rng.integers(2**62)))
        if self.num_classes:
            return self._drawn_probabilities(draws, forecast, observing, rng)
        values = choose_part(draws, forecast.weight, rng)
        if not latent:
            likelihood = observing.likelihood
            if observing.has_counts:
                likelihood = with_counts(likelihood, self._counts(total_count, n))
            values = likelihood.sample(torch.from_numpy(values), generator=generator).numpy()
        return np.asarray(units.target_mean + units.target_scale * values)

    def _drawn_probabilities(
        self, draws: Float[np.ndarray, "s n f"], forecast: ClassForecast, observing: Observing, rng: np.random.Generator
    ) -> Float[np.ndarray, "s n k"]:
        """Return probabilities of classes for latent values, as sure as those of all draws together."""
        (num_samples, n, _), q = draws.shape, observing.num_questions
        each = observing.likelihood.response(torch.from_numpy(draws)).numpy().reshape(num_samples, n, -1, q)
        expert = choose_part(
            np.broadcast_to(np.arange(each.shape[2], dtype=float), each.shape[:3]).copy(), forecast.weight, rng
        )
        each = np.take_along_axis(each, expert[..., None, None].astype(int), axis=2)[:, :, 0]
        drawn = each if q > 1 else np.stack([1.0 - each[..., 0], each[..., 0]], -1)[..., : self.num_classes]
        drawn = np.maximum(drawn, 1e-12)
        drawn = drawn * (forecast.probabilities / np.maximum(forecast.plain, 1e-12))
        return drawn / drawn.sum(-1, keepdims=True) if self.num_classes > 1 else drawn

    def expect(self, X: Float[np.ndarray, "n d"], total_count: Float[np.ndarray, " n"] | None = None) -> Ticket:
        """Predict the next rows, whose targets come later: by `learn_ticket`, in any order."""
        times, counts = self.clock + np.arange(len(X)), self._counts(total_count, len(X))
        forecast = self._forecast(X, times, counts)
        assert self.belief is not None
        self.clock += len(X)
        return Ticket(X.copy(), times, times - self.belief.clock[0], forecast, counts)

    def learn_ticket(
        self,
        ticket: Ticket,
        y: Float[np.ndarray, " n"],
        noises: Float[np.ndarray, " n"] | None = None,
        *,
        on_predicted: OnPredicted | None = None,
    ) -> None:
        """Learn the targets of rows that were asked for, and judge the experts by what they said then."""
        y = self._checked(y, ticket.counts)
        noises = np.ones(len(y)) if noises is None else noises
        self._learn(_Given(ticket.inputs, y, ticket.counts, noises, ticket.times), ticket, on_predicted)

    def with_classes(self, num_classes: int) -> None:
        """Make room for classes that are to come, in place; none of the rows so far was of them."""
        if num_classes <= self.num_classes:
            return
        self.finish()
        self.plan = self.plan._replace(num_classes=num_classes)
        self.sureness = self.sureness.with_classes(num_classes)
        if self.fitted is None or self.belief is None:
            return
        n = self.num_seen
        wider = with_questions(Snapshot(self.fitted, self.belief), num_classes, n)
        if wider.fitted is self.fitted:
            return
        if self.anchor is not None:
            self.anchor = with_questions(self.anchor, num_classes, n)
        self.fitted, self.dynamics, self.halfway = wider.fitted, wider.fitted.dynamics(), None
        self.belief = replay(self.buffer, self.fitted, wider.belief.points[: wider.belief.num_points[0]], self.anchor)
        self.belief.near[:], self.belief.far[:] = wider.belief.near, wider.belief.far

    def learn_unordered(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        total_count: Float[np.ndarray, " n"] | None = None,
    ) -> None:
        """Learn the first rows, whose order means nothing; they come shuffled."""
        counts = self._counts(total_count, len(y))
        y = self._checked(y, counts)
        known = np.isfinite(y)
        X, y, counts = X[known], y[known], counts[known]
        n = min(len(y), self.options.buffer_size)
        if not n:
            return
        self._widen(X)
        self.buffer.append(X[:n], y[:n], np.ones(n), np.arange(n), None, counts[:n])
        self.clock = self.num_seen = self.num_since_start = n
        self._take(refit(self.buffer, None, self.plan, is_timed=False), keeps_weights=False)
        if self.num_classes:
            self.sureness = replace(
                self.sureness, counts=np.bincount(y[:n].astype(int), minlength=self.num_classes) * 1.0
            )
        self.halfway, self.num_halfway = None, 0
        if len(y) > n:
            self._fold()
            self.learn(X[n:], y[n:], total_count=counts[n:] if total_count is not None else None)

    def widened(self, values: Float[np.ndarray, " k"]) -> "StreamLearner":
        """Return a learner with more input columns, in which the rows so far had these values."""
        self.finish()
        n = self.buffer.num_rows
        learner = StreamLearner(self.num_dims + len(values), self.options, num_classes=self.num_classes)
        for name in ("clock", "num_seen", "num_since_start", "schedule", "history", "sureness"):
            setattr(learner, name, getattr(self, name))
        if n:
            old = self.buffer
            X = np.c_[old.inputs[:n], np.tile(values, (n, 1))]
            learner.buffer.append(X, old.targets[:n], old.noises[:n], old.times[:n], None, old.counts[:n])
            learner._widen(X)
            learner._take(refit(learner.buffer, None, self.plan), keeps_weights=False)
            learner.schedule = self.schedule
        if self.belief is not None and learner.belief is not None:
            learner.belief.near[:], learner.belief.far[:] = self.belief.near, self.belief.far
        return learner

    def reset(self) -> None:
        """Forget what the rows said, and keep units, hyperparameters and points."""
        self.finish()
        if self.fitted is None or self.belief is None:
            return
        p, old = int(self.belief.num_points[0]), self.belief
        self.belief = self.fitted.new_belief(
            old.points[:p].copy(), old.whitening[:p, :p].copy(), clock=int(old.clock[0])
        )
        self._forget_rows()

    def rewarm(self) -> None:
        """Begin again with the next row, until which predictions stay as they are."""
        self.finish()
        self._forget_rows()
        self.num_since_start, self.schedule = 0, Schedule()

    def finish(self) -> None:
        """Wait for a refit that runs in the background, and take what it finds."""
        if self._job is not None:
            self._take_job(waits=True)

    def _forget_rows(self) -> None:
        self.buffer = Buffer.empty(self.num_dims)
        self.anchor = self.halfway = None

    @property
    def _started(self) -> tuple[Fitted, Belief, Dynamics]:
        if self.belief is None or self.fitted is None or self.dynamics is None:
            raise UnsupportedError("There is nothing to predict from before the first row. Call learn first.")
        return self.fitted, self.belief, self.dynamics

    @property
    def _observing(self) -> Observing | None:
        """The likelihood as it is before or after the first rows; None for noise whose scale each filter learns."""
        if self.plan.likelihood is None:
            return None
        known = None if self.fitted is None else self.fitted.observing
        return Observing(self.plan.likelihood) if known is None else known

    def _counts(self, total_count: Float[np.ndarray, " n"] | None, num_rows: int) -> Float[np.ndarray, " n"]:
        """Return numbers of trials or exposures; ones for targets that have none."""
        observing = self._observing
        has_counts = observing is not None and not self.num_classes and observing.has_counts
        if total_count is not None and not has_counts:
            raise OptionError(
                f"total_count holds numbers of trials, but the likelihood is {self.options.likelihood!r}. Leave it "
                "out, or choose likelihood='binomial'."
            )
        if has_counts and observing is not None and total_count is None:
            if self.options.likelihood == "binomial":
                raise OptionError(
                    "The likelihood is 'binomial', but there is no total_count. Pass the number of trials of each row, "
                    "or likelihood=streamgp.likelihoods.Binomial(N) if it is the same for all."
                )
            return np.full(num_rows, observing.usual_count)
        return np.ones(num_rows) if total_count is None else np.broadcast_to(total_count, (num_rows,)).astype(float)

    def _checked(self, y: Float[np.ndarray, " n"], counts: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return targets as numbers; those that the likelihood does not allow are refused."""
        y = np.asarray(y, dtype=float)
        observing = None if self.plan.scales_targets else self._observing
        if observing is None:
            return y
        known = np.isfinite(y)
        if self.num_classes:
            if not (y[known] < self.num_classes).all():
                raise OptionError(f"There are {self.num_classes} classes. Announce more by with_classes.")
        elif known.any():
            likelihood = observing.likelihood
            likelihood = with_counts(likelihood, counts[known]) if observing.has_counts else likelihood
            likelihood.check_targets(torch.from_numpy(y[known]))
        return y

    def _forecast(
        self, X: Float[np.ndarray, "n d"], times: Int[np.ndarray, " n"], counts: Float[np.ndarray, " n"]
    ) -> AnyForecast:
        fitted, belief, dynamics = self._started
        said = empty_said(len(X), belief)
        predict_rows(fitted.units.inputs(self._limited(X)), times, belief, dynamics, fitted.observing, said)
        return self._spoken(said, counts)

    def _spoken(self, said: Said, counts: Float[np.ndarray, " n"]) -> AnyForecast:
        """Return what filters said as a forecast in the user's units."""
        fitted = self._started[0]
        units, observing = fitted.units, fitted.observing
        if observing is None:
            return Forecast.from_said(said, units.target_mean, units.target_scale)
        if self.num_classes:
            found = ClassForecast.from_said(said, observing, self.num_classes)
            return replace(found, probabilities=self.sureness.applied(found.probabilities))
        mean, scale = units.target_mean, units.target_scale
        return LatentForecast.from_said(said, observing, counts, target_mean=mean, target_scale=scale)

    def _limited(self, X: Float[np.ndarray, "n d"], *, is_early: bool | None = None) -> Float[np.ndarray, "n d"]:
        """Limit inputs to the range so far and as much on both sides: a line is drawn out so far and no farther.

        A single slip of the pen would otherwise be the scale of all inputs. A column that was constant has no range.
        """
        if self.num_since_start < FEW_ROWS if is_early is None else is_early:
            return X
        width = self.upper - self.lower
        width[width == 0.0] = np.inf
        low, high = self.lower - width, self.upper + width
        return X if ((low <= X) & (high >= X)).all() else np.clip(X, low, high)

    def _reached(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Limit inputs of rows that are about to be learned, one after the other, and widen the range by them."""
        early = max(FEW_ROWS - self.num_since_start, 0)
        parts = [X[:early], X[early:]] if early else [X]
        limited = []
        for i, part in enumerate(parts):
            within = part if early and not i else self._limited(part, is_early=False)
            if within is part:
                limited.append(part)
                self._widen(part)
                continue
            for row in part:
                one = self._limited(row[None], is_early=False)
                self.num_outside += not np.array_equal(one[0], row)
                self._widen(one)
                limited.append(one)
        return limited[0] if len(limited) == 1 else np.concatenate(limited)

    def _widen(self, X: Float[np.ndarray, "n d"]) -> None:
        if len(X):
            self.lower, self.upper = np.minimum(self.lower, X.min(0)), np.maximum(self.upper, X.max(0))

    def _learn(self, given: "_Given", ticket: Ticket | None, on_predicted: OnPredicted | None) -> None:
        given = given._replace(inputs=self._reached(given.inputs))
        known = np.flatnonzero(np.isfinite(given.targets))
        start = 0
        while start < len(known):
            stop = min(len(known), start + self._num_at_once())
            self._learn_part(given, known[start:stop], ticket, on_predicted)
            start = stop
            if self._job is not None and self._job.is_done:
                self._take_job(waits=False)
            if self.schedule.is_due(self.num_since_start):
                self._refit()
            self._fold()

    def _num_at_once(self) -> int:
        """Return how many rows can be learned before something else is to be done."""
        options = self.options
        until = [_CHUNK - self.num_seen % _CHUNK]
        due = self.schedule.next_refit
        if due is not None and due > self.num_since_start:
            until.append(due - self.num_since_start)
        room = options.buffer_size if self.halfway is not None else options.buffer_size // 2
        if self.buffer.num_rows < room:
            until.append(room - self.buffer.num_rows)
        return min(until)

    def _learn_part(
        self, given: "_Given", rows: Int[np.ndarray, " r"], ticket: Ticket | None, on_predicted: OnPredicted | None
    ) -> None:
        buffer, n = self.buffer, len(rows)
        fitted, belief = self.fitted, self.belief
        X, y, counts, noises, times = (each[rows] for each in given)
        buffer.append(X, y, noises, times, None if fitted is None else fitted.units, counts)
        if belief is not None and fitted is not None:
            powers, said, forecast = None, empty_said(n, belief), None
            if ticket is not None:
                forecast = ticket.prediction.take(rows)
                asked = (
                    forecast.said(fitted.units, len(belief.mean)) if isinstance(forecast, Forecast) else forecast.said()
                )
                if asked.location.shape == said.location.shape:  # classes may have come since
                    said, powers = asked, 1.0 / (1.0 + np.maximum(ticket.leads[rows], 0.0))
            first = at = buffer.num_rows - n
            while at < buffer.num_rows:
                at = self._learn_rows(at, said.rows(at - first, n), None if powers is None else powers[at - first :])
            if self.num_classes and fitted.observing is not None:
                found = ClassForecast.from_said(said, fitted.observing, self.num_classes)
                self.sureness, sure = self.sureness.learned(found.probabilities, y.astype(int))
                forecast = replace(found, probabilities=sure) if forecast is None else forecast
            if on_predicted is not None:
                on_predicted(rows, self._spoken(said, counts) if forecast is None else forecast)
        elif self.num_classes:
            self.sureness, _ = self.sureness.learned(
                np.full((n, self.num_classes), 1.0 / self.num_classes), y.astype(int)
            )
        self.num_seen += n
        self.num_since_start += n
        if self.num_seen % _CHUNK == 0 and self.belief is not None and self.fitted is not None:
            self.history.note(self.num_seen, self.belief, self.noise_variance**0.5)
            if self.moves:
                self._look_around(buffer.num_rows)

    def _learn_rows(self, start: int, said: Said, powers: Float[np.ndarray, " n"] | None) -> int:
        """Learn rows of the buffer from `start` on, until something is to be done; returns the row after the last."""
        fitted, belief, dynamics = self._started
        p, n = int(belief.num_points[0]), self.buffer.num_rows - start
        most = max(self.plan.most_points, p)
        self.belief = belief.with_room(min(most, p + n))
        stop, left_open = learn_rows(
            self.buffer,
            start,
            self.buffer.num_rows,
            self.belief,
            dynamics,
            fitted.observing,
            most_points=most,
            most_open=self.most_open,
            said=said,
            exchanges=self.moves,
            powers=powers,
        )
        self.most_open -= left_open
        if self.most_open < 0.0:
            self._look_around(stop)
        return stop

    def _look_around(self, num_rows: int) -> None:
        """Find out whether points should move along with the rows, and if not, ask less often."""
        fitted, belief, dynamics = self._started
        scaled = self.buffer.scaled_inputs[:num_rows]
        self.moves = is_moving(scaled, belief, dynamics.kernel, fitted.prior.worth)
        self.patience = _LEAST_OPEN if self.moves else min(2.0 * self.patience, _MOST_OPEN)
        self.most_open = self.patience

    def _refit(self) -> None:
        """Learn units, hyperparameters and points anew, or begin to."""
        n = self.num_since_start
        if self.options.refit != "background" or n < _FIRST_IN_BACKGROUND:
            self._take(refit(self.buffer, self.fitted, self.plan, start=self.anchor))
        elif self._job is None:
            self._job = BackgroundRefit.start(self.buffer.copy(), self.fitted, self.plan, start=self.anchor)
            self.schedule = replace(self.schedule, next_refit=None)

    def _take_job(self, *, waits: bool) -> None:
        """Take what a refit in the background has found, and learn the rows that came meanwhile.

        Where many came and nobody waits, those are learned in the background, too.
        """
        assert self._job is not None
        found, start, self._job = self._job.result(), self._job.num_rows, None
        if not waits and self.buffer.num_rows - start > _MOST_BEHIND:
            most = self.plan.most_points
            self._job = BackgroundRefit.catch_up(found, self.buffer.copy(), start, most_points=most)
            return
        self._take(found, num_rows=self.num_since_start - (self.buffer.num_rows - start))
        assert self.belief is not None
        assert self.dynamics is not None
        self.buffer.rescale(found.fitted.units)
        near, far = self.belief.near.copy(), self.belief.far.copy()
        n = self.buffer.num_rows
        while start < n:
            start = self._learn_rows(start, empty_said(n - start, self.belief), None)
        self.belief.near[:], self.belief.far[:] = near, far

    def _take(self, found: Refit, *, keeps_weights: bool = True, num_rows: int | None = None) -> None:
        """Take what a refit found after so many rows."""
        if self.belief is not None and keeps_weights:
            found.belief.near[:] = self.belief.near
            found.belief.far[:] = self.belief.far
        n, options = self.num_since_start if num_rows is None else num_rows, self.options
        self.fitted, self.belief = found.fitted, found.belief
        self.dynamics = found.fitted.dynamics()
        self.history.note_refit(self.num_seen, found.gain, found.seconds, int(found.belief.num_points[0]))
        if self.num_seen < _CHUNK:
            self.history.note(self.num_seen, self.belief, self.noise_variance**0.5)
        self.schedule = self.schedule.after(n, found.gain, refit=options.refit, warmup=options.warmup)

    def _fold(self) -> None:
        """Leave the older half of a full buffer to a belief."""
        if self.belief is None or self.fitted is None:
            return
        if self.halfway is not None and self.buffer.num_rows >= self.options.buffer_size:
            self.finish()
            self.buffer.drop(self.num_halfway)
            self.anchor, self.halfway = self.halfway, None
        if self.halfway is None and self.buffer.num_rows >= self.options.buffer_size // 2:
            self.halfway = Snapshot(self.fitted, self.belief.copy())
            self.num_halfway = self.buffer.num_rows
