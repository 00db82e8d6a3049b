"""A stream that is predicted and learned row by row, in constant time and memory."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float, Int

from streamgp.streams.buffer import Buffer
from streamgp.streams.points import is_moving
from streamgp.streams.predictive import Forecast
from streamgp.streams.prior import EXPERTS
from streamgp.streams.refit import Fitted, Refit, refit
from streamgp.streams.rows import learn_rows, predict_rows
from streamgp.streams.state import Belief, Dynamics, Said, empty_said

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
# Rows that are learned in one call of the compiled functions.
_CHUNK = 64


@final
@dataclass(frozen=True)
class StreamOptions:
    """Options of a stream.

    Attributes:
        most_points: Budget of inducing points.
        buffer_size: Latest rows that a refit sees one by one.
        refit: `"auto"`, `"background"`, `"never"` after the warm-up, or every so many rows.
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
    """What is known of a stream of one target; changed in place, row by row.

    Rows are learned in order, so that many in one call give what they give one by one. Refits learn units,
    hyperparameters and points anew, and replay the rows of the buffer; weights of experts stay as they were earned by
    predictions of rows that had not been seen.
    """

    def __init__(self, num_dims: int, options: StreamOptions | None = None) -> None:
        self.options = options or StreamOptions()
        self.buffer = Buffer.empty(num_dims)
        self.fitted: Fitted | None = None
        self.dynamics: Dynamics | None = None
        self.belief: Belief | None = None
        self.clock = 0
        self.num_seen = 0
        self.num_since_start = 0
        self.num_at_refit = 0
        self.next_refit: int | None = 1
        self.interval = _LONGEST
        self.moves = False
        self.patience = self.most_open = _LEAST_OPEN

    @property
    def num_dims(self) -> int:
        """Number of input columns."""
        return int(self.buffer.inputs.shape[1])

    def predict(self, X: Float[np.ndarray, "n d"], *, horizon: int | Int[np.ndarray, " n"] = 1) -> Forecast:
        """Predict rows that are `horizon` rows ahead, 1 for the next row; there must have been a row."""
        assert self.belief is not None
        times = np.broadcast_to(np.asarray(self.clock - 1 + horizon, dtype=np.int64), (len(X),)).copy()
        return self._forecast(X, times)

    def learn(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        noises: Float[np.ndarray, " n"] | None = None,
        *,
        on_predicted: Callable[[int, Forecast], None] | None = None,
    ) -> None:
        """Learn the next rows, in order.

        Args:
            X: Inputs.
            y: Targets.
            noises: Variances of the noise in units of what is usual, one over the weights of the rows.
            on_predicted: Is shown, part by part, the index of the first row and what was said of the rows before.
        """
        times = self.clock + np.arange(len(y))
        self.clock += len(y)
        self._learn(X, y, np.ones(len(y)) if noises is None else noises, times, None, on_predicted)

    def expect(self, X: Float[np.ndarray, "n d"]) -> Ticket:
        """Predict the next rows, whose targets come later: by `learn_ticket`, in any order."""
        assert self.belief is not None
        times = self.clock + np.arange(len(X))
        ticket = Ticket(X.copy(), times, times - self.belief.clock[0], self._forecast(X, times))
        self.clock += len(X)
        return ticket

    def learn_ticket(self, ticket: Ticket, y: Float[np.ndarray, " n"], noises: Float[np.ndarray, " n"]) -> None:
        """Learn the targets of rows that were asked for, and judge the experts by what they said then."""
        self._learn(ticket.inputs, y, noises, ticket.times, ticket, None)

    def reset(self) -> None:
        """Forget what the rows said, and keep units, hyperparameters and points."""
        raise NotImplementedError

    def _forecast(self, X: Float[np.ndarray, "n d"], times: Int[np.ndarray, " n"]) -> Forecast:
        assert self.fitted is not None
        assert self.belief is not None
        assert self.dynamics is not None
        units = self.fitted.units
        said = empty_said(len(X), len(EXPERTS))
        predict_rows(units.inputs(X), times, self.belief, self.dynamics, said)
        return Forecast.from_said(said, units.target_mean, units.target_scale)

    def _learn(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        noises: Float[np.ndarray, " n"],
        times: Int[np.ndarray, " n"],
        ticket: Ticket | None,
        on_predicted: Callable[[int, Forecast], None] | None,
    ) -> None:
        start = 0
        while start < len(y):
            stop = min(len(y), start + self._num_at_once())
            self._learn_part(
                X[start:stop], y[start:stop], noises[start:stop], times[start:stop], ticket, start, on_predicted
            )
            start = stop
            if self.num_since_start == self.next_refit:
                self._refit()

    def _num_at_once(self) -> int:
        """Return how many rows can be learned before something else is to be done."""
        until_chunk = _CHUNK - self.num_seen % _CHUNK
        return until_chunk if self.next_refit is None else min(until_chunk, self.next_refit - self.num_since_start)

    def _learn_part(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        noises: Float[np.ndarray, " n"],
        times: Int[np.ndarray, " n"],
        ticket: Ticket | None,
        start: int,
        on_predicted: Callable[[int, Forecast], None] | None,
    ) -> None:
        buffer, n = self.buffer, len(y)
        buffer.append(X, y, noises, times, None if self.fitted is None else self.fitted.units)
        if self.belief is not None and self.fitted is not None and self.dynamics is not None:
            units, p, most = self.fitted.units, int(self.belief.num_points[0]), self.options.most_points
            self.belief = self.belief.with_room(min(max(most, p), p + n))
            powers = None
            if ticket is None:
                said = empty_said(n, len(EXPERTS))
            else:
                part = ticket.prediction.rows(start, start + n)
                said = part.said(units.target_mean, units.target_scale, len(EXPERTS))
                powers = 1.0 / (1.0 + np.maximum(ticket.leads[start : start + n], 0.0))
            first = buffer.num_rows - n
            at = first
            while at < buffer.num_rows:
                at, left_open = learn_rows(
                    buffer,
                    at,
                    buffer.num_rows,
                    self.belief,
                    self.dynamics,
                    most_points=max(most, p),
                    most_open=self.most_open,
                    said=said.rows(at - first, n),
                    exchanges=self.moves,
                    powers=None if powers is None else powers[at - first :],
                )
                self.most_open -= left_open
                if self.most_open < 0.0:
                    self._look_around(at)
            forecast = Forecast.from_said(said, units.target_mean, units.target_scale)
            if on_predicted is not None:
                on_predicted(start, forecast)
        self.num_seen += n
        self.num_since_start += n
        if self.moves and self.num_seen % _CHUNK == 0:
            self._look_around(buffer.num_rows)

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
        found = refit(self.buffer, self.fitted, most_points=self.options.most_points)
        self._take(found)

    def _take(self, found: Refit) -> None:
        if self.belief is not None:
            found.belief.near[:] = self.belief.near
            found.belief.far[:] = self.belief.far
        n, options = self.num_since_start, self.options
        self.fitted, self.belief = found.fitted, found.belief
        self.dynamics = found.fitted.prior.dynamics()
        self.num_at_refit = n
        if n < _EARLY[-1]:
            self.next_refit = next(each for each in _EARLY if each > n)
        elif n < options.warmup or options.refit in ("auto", "background"):
            if n >= 2 * _LONGEST:
                self.interval = min(2 * self.interval, 8 * _LONGEST) if found.gain < _SETTLED_NATS else _LONGEST
            self.next_refit = min(2 * n, n + self.interval)
        else:
            self.next_refit = None if options.refit == "never" else n + int(options.refit)
