"""A stream that is predicted and learned row by row, in constant time and memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from streamgp.errors import UnsupportedError
from streamgp.streams.buffer import Buffer
from streamgp.streams.history import History
from streamgp.streams.points import is_moving, matern, slack_of
from streamgp.streams.predictive import Forecast
from streamgp.streams.prior import EXPERTS
from streamgp.streams.refit import BackgroundRefit, Fitted, Refit, Snapshot, refit
from streamgp.streams.rows import learn_rows, predict_rows
from streamgp.streams.state import Belief, Dynamics, Said, empty_said, new_belief

__all__ = ["StreamLearner", "StreamOptions", "Ticket"]

# Numbers of rows after which early refits are due; then doubling, and then as `_LONGEST` says.
_EARLY = (1, 2, 3, 5, 7, 10)
# Rows between refits at most, once there are many; larger saves time, and follows slow changes later.
_LONGEST = 1000
# Nats a row that a refit must gain for the next one to come as soon; larger refits quiet streams less often.
_SETTLED_NATS = 0.005
# Nats that rows leave open for want of points before it is asked whether points should move, at first and at most;
# larger asks less often.
_LEAST_OPEN, _MOST_OPEN = 2.0, 128.0
# Rows from which on refits may run in the background; earlier ones take a few milliseconds.
_FIRST_IN_BACKGROUND = 20
# Rows that a call learns again when a refit in the background is there; larger makes that call longer.
_MOST_BEHIND = 32
# Rows that are learned in one call of the compiled functions.
_CHUNK = 64

OnPredicted = Callable[[Int[np.ndarray, " r"], Forecast], None]


@final
@dataclass(frozen=True)
class StreamOptions:
    """Options of a stream.

    Attributes:
        most_points: Budget of inducing points.
        buffer_size: Latest rows that a refit sees one by one.
        refit: `"auto"`, `"background"`, `"doubling"`, `"never"` after the warm-up, or every so many rows.
        warmup: Rows after which `"never"` and a number count.
    """

    most_points: int = 256
    buffer_size: int = 4000
    refit: str | int = "auto"
    warmup: int = 200


@final
@dataclass(frozen=True, eq=False)
class Ticket:
    """Rows that were asked for and whose targets are still to come.

    Attributes:
        inputs: The rows.
        times: When they were, counted in rows.
        leads: Rows whose targets were still to come when it was asked.
        prediction: What was said.
    """

    inputs: Float[np.ndarray, "n d"]
    times: Int[np.ndarray, " n"]
    leads: Int[np.ndarray, " n"]
    prediction: Forecast


@final
class StreamLearner:
    """State of a stream of one target; changed in place, row by row.

    Rows are learned in order, so that many in one call give what they give one by one. Refits learn units,
    hyperparameters and points anew, and replay the rows of the buffer; weights of experts stay as they were earned by
    predictions of rows that had not been seen. What rows said that have left the buffer is carried as a belief.

    Attributes:
        options: Options.
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

    def __init__(self, num_dims: int, options: StreamOptions | None = None) -> None:
        self.options = options or StreamOptions()
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
        self.next_refit: int | None = 1
        self.interval = _LONGEST
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

    def predict(self, X: Float[np.ndarray, "n d"], *, horizon: int | Int[np.ndarray, " n"] = 1) -> Forecast:
        """Predict rows that are `horizon` rows ahead, 1 for the next row."""
        times = np.broadcast_to(np.asarray(self.clock - 1 + horizon, dtype=np.int64), (len(X),)).copy()
        return self._forecast(X, times)

    def learn(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        noises: Float[np.ndarray, " n"] | None = None,
        *,
        on_predicted: OnPredicted | None = None,
    ) -> None:
        """Learn the next rows, in order.

        Args:
            X: Inputs.
            y: Targets; rows where they are NaN pass without being learned.
            noises: Variances of the noise in units of what is usual, one over the weights of the rows.
            on_predicted: Is shown, part by part, which rows these are and what was said of them before.
        """
        times = self.clock + np.arange(len(y))
        self.clock += len(y)
        self._learn(X, y, noises, times, None, on_predicted)

    @property
    def noise_variance(self) -> float:
        """Variance of the noise in the user's units, as the experts see it of late."""
        assert self.belief is not None
        assert self.fitted is not None
        variance = (np.exp(self.belief.near) * self.belief.rate / self.belief.shape).sum()
        return float(variance * self.fitted.units.target_scale**2)

    def slack(self, scaled: Float[np.ndarray, "n d"]) -> float:
        """Return the largest share of the function's variance that points leave open at standardized inputs."""
        assert self.belief is not None
        assert self.dynamics is not None
        p = self.belief.num_points[0]
        whitening = self.belief.whitening[:p, :p]
        return float(slack_of(scaled, self.belief.points[:p], whitening, self.dynamics.inverse_lengthscales).max())

    def sample(
        self, X: Float[np.ndarray, "n d"], num_samples: int, rng: np.random.Generator, *, latent: bool = False
    ) -> Float[np.ndarray, "s n"]:
        """Draw targets, or functions without the noise, for all rows together, each of one expert where it can be.

        Args:
            X: Inputs.
            num_samples: Number of draws.
            rng: Source of randomness.
            latent: Leave out the noise.
        """
        forecast = self.predict(X)
        assert self.belief is not None
        assert self.dynamics is not None
        assert self.fitted is not None
        belief, dynamics, units = self.belief, self.dynamics, self.fitted.units
        p, scaled = int(belief.num_points[0]), units.inputs(X)
        kernel = matern(scaled, scaled, dynamics.inverse_lengthscales)
        features = matern(scaled, belief.points[:p], dynamics.inverse_lengthscales) @ belief.whitening[:p, :p].T
        h = np.c_[np.ones(len(X)), scaled, features]
        lag = self.clock - belief.clock[0]
        draws = np.empty((num_samples, *forecast.weight.shape))
        for e in range(len(EXPERTS)):
            size = h.shape[1] if dynamics.function[e] > 0.0 else 1
            joint = h[:, :size] @ belief.covariance[e, :size, :size] @ h[:, :size].T
            joint = joint + dynamics.function[e] * (kernel - features @ features.T) + float(lag) * dynamics.walk[e]
            values, vectors = np.linalg.eigh(0.5 * (joint + joint.T))
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            normal = rng.standard_normal((num_samples, len(X))) @ root.T
            noise = 0.0 if latent else rng.standard_normal((num_samples, len(X)))
            for k in range(belief.shape.shape[1]):
                part = 2 * e + k
                degrees = forecast.degrees[0, part]
                scale = units.target_scale * np.sqrt(belief.rate[e, k] / belief.shape[e, k])
                spread = scale / np.sqrt(rng.chisquare(degrees, (num_samples, 1)) / degrees)
                draws[:, :, part] = forecast.location[:, part] + spread * (normal + noise)
        below = np.cumsum(forecast.weight, axis=1)[None] < rng.random((num_samples, 1, 1))
        chosen = np.minimum(below.sum(-1, keepdims=True), draws.shape[-1] - 1)
        return np.take_along_axis(draws, chosen, axis=-1)[..., 0]

    def expect(self, X: Float[np.ndarray, "n d"]) -> Ticket:
        """Predict the next rows, whose targets come later: by `learn_ticket`, in any order."""
        times = self.clock + np.arange(len(X))
        forecast = self._forecast(X, times)
        assert self.belief is not None
        self.clock += len(X)
        return Ticket(X.copy(), times, times - self.belief.clock[0], forecast)

    def learn_ticket(
        self,
        ticket: Ticket,
        y: Float[np.ndarray, " n"],
        noises: Float[np.ndarray, " n"] | None = None,
        *,
        on_predicted: OnPredicted | None = None,
    ) -> None:
        """Learn the targets of rows that were asked for, and judge the experts by what they said then."""
        self._learn(ticket.inputs, y, noises, ticket.times, ticket, on_predicted)

    def learn_unordered(self, X: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> None:
        """Learn the first rows, whose order means nothing; they come shuffled."""
        known = np.isfinite(y)
        X, y = X[known], y[known]
        n = min(len(y), self.options.buffer_size)
        if not n:
            return
        self._widen(X)
        self.buffer.append(X[:n], y[:n], np.ones(n), np.arange(n), None)
        self.clock = self.num_seen = self.num_since_start = n
        found = refit(self.buffer, None, most_points=self.options.most_points, is_timed=False)
        self._take(found, keeps_weights=False)
        self.halfway, self.num_halfway = None, 0
        if len(y) > n:
            self._fold()
            self.learn(X[n:], y[n:])

    def widened(self, values: Float[np.ndarray, " k"]) -> "StreamLearner":
        """Return a learner with more input columns, in which the rows so far had these values."""
        self.finish()
        learner, n = StreamLearner(self.num_dims + len(values), self.options), self.buffer.num_rows
        for name in ("clock", "num_seen", "num_since_start", "next_refit", "interval", "history"):
            setattr(learner, name, getattr(self, name))
        if n:
            old = self.buffer
            X = np.c_[old.inputs[:n], np.tile(values, (n, 1))]
            learner.buffer.append(X, old.targets[:n], old.noises[:n], old.times[:n], None)
            learner._widen(X)
            next_refit = self.next_refit
            learner._take(refit(learner.buffer, None, most_points=self.options.most_points), keeps_weights=False)
            learner.next_refit = next_refit
        if self.belief is not None and learner.belief is not None:
            learner.belief.near[:], learner.belief.far[:] = self.belief.near, self.belief.far
        return learner

    def reset(self) -> None:
        """Forget what the rows said, and keep units, hyperparameters and points."""
        self.finish()
        if self.fitted is None or self.belief is None or self.dynamics is None:
            return
        p, old = int(self.belief.num_points[0]), self.belief
        self.belief = new_belief(
            self.dynamics,
            old.points[:p].copy(),
            old.whitening[:p, :p].copy(),
            noise_variance=self.fitted.prior.noise_variance,
            clock=int(old.clock[0]),
        )
        self._forget_rows()

    def rewarm(self) -> None:
        """Begin again with the next row, until which predictions stay as they are."""
        self.finish()
        self._forget_rows()
        self.num_since_start, self.next_refit = 0, 1

    def finish(self) -> None:
        """Wait for a refit that runs in the background, and take what it finds."""
        if self._job is not None:
            self._take_job(waits=True)

    def _forget_rows(self) -> None:
        self.buffer = Buffer.empty(self.num_dims)
        self.anchor = self.halfway = None

    def _forecast(self, X: Float[np.ndarray, "n d"], times: Int[np.ndarray, " n"]) -> Forecast:
        if self.belief is None or self.fitted is None or self.dynamics is None:
            raise UnsupportedError("There is nothing to predict from before the first row. Call learn first.")
        units = self.fitted.units
        said = empty_said(len(X), len(EXPERTS))
        predict_rows(units.inputs(self._limited(X)), times, self.belief, self.dynamics, said)
        return Forecast.from_said(said, units.target_mean, units.target_scale)

    def _limited(self, X: Float[np.ndarray, "n d"], *, is_early: bool | None = None) -> Float[np.ndarray, "n d"]:
        """Limit inputs to the range so far and as much on both sides: a line is drawn out so far and no farther.

        A single slip of the pen would otherwise be the scale of all inputs. A column that was constant has no range.
        """
        if self.num_since_start < _EARLY[-1] if is_early is None else is_early:
            return X
        width = self.upper - self.lower
        width[width == 0.0] = np.inf
        low, high = self.lower - width, self.upper + width
        return X if ((low <= X) & (high >= X)).all() else np.clip(X, low, high)

    def _reached(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Limit inputs of rows that are about to be learned, one after the other, and widen the range by them."""
        early = max(_EARLY[-1] - self.num_since_start, 0)
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

    def _learn(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        noises: Float[np.ndarray, " n"] | None,
        times: Int[np.ndarray, " n"],
        ticket: Ticket | None,
        on_predicted: OnPredicted | None,
    ) -> None:
        X, noises = self._reached(X), np.ones(len(y)) if noises is None else noises
        known = np.flatnonzero(np.isfinite(y))
        start = 0
        while start < len(known):
            stop = min(len(known), start + self._num_at_once())
            rows = known[start:stop]
            self._learn_part(X, y, noises, times, rows, ticket, on_predicted)
            start = stop
            if self._job is not None and self._job.is_done:
                self._take_job(waits=False)
            if self.next_refit is not None and self.num_since_start >= self.next_refit:
                self._refit()
            self._fold()

    def _num_at_once(self) -> int:
        """Return how many rows can be learned before something else is to be done."""
        options = self.options
        until = [_CHUNK - self.num_seen % _CHUNK]
        if self.next_refit is not None and self.next_refit > self.num_since_start:
            until.append(self.next_refit - self.num_since_start)
        room = options.buffer_size if self.halfway is not None else options.buffer_size // 2
        if self.buffer.num_rows < room:
            until.append(room - self.buffer.num_rows)
        return min(until)

    def _learn_part(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        noises: Float[np.ndarray, " n"],
        times: Int[np.ndarray, " n"],
        rows: Int[np.ndarray, " r"],
        ticket: Ticket | None,
        on_predicted: OnPredicted | None,
    ) -> None:
        buffer, n = self.buffer, len(rows)
        fitted, belief, dynamics = self.fitted, self.belief, self.dynamics
        buffer.append(X[rows], y[rows], noises[rows], times[rows], None if fitted is None else fitted.units)
        if belief is not None and fitted is not None and dynamics is not None:
            units, powers, said = fitted.units, None, empty_said(n, len(EXPERTS))
            if ticket is not None:
                said = ticket.prediction.take(rows).said(units.target_mean, units.target_scale, len(EXPERTS))
                powers = 1.0 / (1.0 + np.maximum(ticket.leads[rows], 0.0))
            first = at = buffer.num_rows - n
            while at < buffer.num_rows:
                at = self._learn_rows(at, said.rows(at - first, n), None if powers is None else powers[at - first :])
            if on_predicted is not None:
                on_predicted(rows, Forecast.from_said(said, units.target_mean, units.target_scale))
        self.num_seen += n
        self.num_since_start += n
        if self.num_seen % _CHUNK == 0 and self.belief is not None and self.fitted is not None:
            self.history.note(self.num_seen, self.belief, self.fitted.units.target_scale)
            if self.moves:
                self._look_around(buffer.num_rows)

    def _learn_rows(self, start: int, said: Said, powers: Float[np.ndarray, " n"] | None) -> int:
        """Learn rows of the buffer from `start` on, until something is to be done; returns the row after the last."""
        assert self.belief is not None
        assert self.dynamics is not None
        p, n = int(self.belief.num_points[0]), self.buffer.num_rows - start
        most = max(self.options.most_points, p)
        self.belief = self.belief.with_room(min(most, p + n))
        stop, left_open = learn_rows(
            self.buffer,
            start,
            self.buffer.num_rows,
            self.belief,
            self.dynamics,
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
        assert self.belief is not None
        assert self.dynamics is not None
        self.moves = is_moving(
            self.buffer.scaled_inputs[:num_rows],
            self.belief,
            self.dynamics.inverse_lengthscales,
            float(self.dynamics.function.max()),
        )
        self.patience = _LEAST_OPEN if self.moves else min(2.0 * self.patience, _MOST_OPEN)
        self.most_open = self.patience

    def _refit(self) -> None:
        """Learn units, hyperparameters and points anew, or begin to."""
        n, most = self.num_since_start, self.options.most_points
        if self.options.refit != "background" or n < _FIRST_IN_BACKGROUND:
            self._take(refit(self.buffer, self.fitted, most_points=most, start=self.anchor))
        elif self._job is None:
            self._job = BackgroundRefit.start(self.buffer.copy(), self.fitted, most_points=most, start=self.anchor)
            self.next_refit = None

    def _take_job(self, *, waits: bool) -> None:
        """Take what a refit in the background has found, and learn the rows that came meanwhile.

        Where many came and nobody waits, those are learned in the background, too.
        """
        assert self._job is not None
        found, start, self._job = self._job.result(), self._job.num_rows, None
        if not waits and self.buffer.num_rows - start > _MOST_BEHIND:
            most = self.options.most_points
            self._job = BackgroundRefit.catch_up(found, self.buffer.copy(), start, most_points=most)
            return
        self._take(found, num_rows=self.num_since_start - (self.buffer.num_rows - start))
        assert self.belief is not None
        assert self.dynamics is not None
        self.buffer.rescale(found.fitted.units)
        near, far = self.belief.near.copy(), self.belief.far.copy()
        n = self.buffer.num_rows
        while start < n:
            start = self._learn_rows(start, empty_said(n - start, len(EXPERTS)), None)
        self.belief.near[:], self.belief.far[:] = near, far

    def _take(self, found: Refit, *, keeps_weights: bool = True, num_rows: int | None = None) -> None:
        """Take what a refit found after so many rows."""
        if self.belief is not None and keeps_weights:
            found.belief.near[:] = self.belief.near
            found.belief.far[:] = self.belief.far
        n, options = self.num_since_start if num_rows is None else num_rows, self.options
        self.fitted, self.belief = found.fitted, found.belief
        self.dynamics = found.fitted.prior.dynamics()
        self.history.note_refit(self.num_seen, found.gain, found.seconds, int(found.belief.num_points[0]))
        if n < _EARLY[-1]:
            self.next_refit = next(each for each in _EARLY if each > n)
        elif n < options.warmup:
            # One that the end of the warm-up follows soon would be for little.
            self.next_refit = 2 * n if 6 * n <= 2 * options.warmup else options.warmup
        elif options.refit == "doubling":
            self.next_refit = 2 * n
        elif options.refit in ("auto", "background"):
            if n >= 2 * _LONGEST:
                self.interval = min(2 * self.interval, 8 * _LONGEST) if found.gain < _SETTLED_NATS else _LONGEST
            self.next_refit = min(2 * n, n + self.interval)
        else:
            self.next_refit = None if options.refit == "never" else n + int(options.refit)

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
