"""Learning from a stream in constant time and memory."""

from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import OptionError, UnsupportedError
from streamgp.streaming.model import StreamModel, StreamPrediction
from streamgp.streaming.refitting import RefitReport, absorb_rows, first_fit, refit
from streamgp.streaming.rows import Rows, likelihood_of, read_inputs, read_rows
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.sizing import num_unexplained

__all__ = ["LearnInfo", "StreamLearner"]

# Rows that are absorbed at once: enough that more would gain nothing in speed.
_MOST_ROWS_AT_ONCE = 256
# With a half-life, rows that are absorbed at once are forgotten at once; these are a small part of it.
_BLOCKS_OF_HALF_LIFE = 16
_MOST_REPORTS = 32


class LearnInfo(NamedTuple):
    """Diagnostics of learning some rows.

    Attributes:
        num_outside: How many inputs lay far outside the range of the warm-up.
        refits: What became of refits on the way.
    """

    num_outside: int = 0
    refits: tuple[RefitReport, ...] = ()


@final
@dataclass(frozen=True, eq=False)
class StreamLearner:
    """What is known of a stream: a frozen value of bounded size.

    During the warm-up all rows are kept, and units, hyperparameters and inducing points are learned anew each time
    their number has doubled. After it the units stay, rows are absorbed into the belief, and hyperparameters are
    learned by policy from the latest rows, the buffer, together with the belief about all rows before them, the anchor.

    Attributes:
        settings: Options.
        model: Belief about all rows so far, with its units; None before the first.
        anchor: Belief about the rows before those in the buffer; None while there are none.
        buffer: The latest rows.
        num_seen: Number of rows so far.
        num_since_start: Number of rows since the warm-up began.
        next_refit: At which of these hyperparameters are learned next; None for never.
        num_outside: Inputs far outside the range of the warm-up so far.
        refits: The latest reports.
    """

    settings: StreamSettings
    model: StreamModel | None = None
    anchor: SparseGP | None = None
    buffer: Rows | None = None
    num_seen: int = 0
    num_since_start: int = 0
    next_refit: int | None = 1
    num_outside: int = 0
    refits: tuple[RefitReport, ...] = ()

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up is over."""
        return self.num_since_start >= self.settings.warmup

    @property
    def num_dims(self) -> int | None:
        """Number of input columns; None before the first row."""
        return None if self.model is None else self.model.lower.shape[-1]

    def predict(self, X: Tensor, totals: Tensor | None = None) -> StreamPrediction:
        """Predict targets at inputs `(n, d)`, in the user's units; there must have been a row to learn from.

        Args:
            X: Inputs.
            totals: Numbers of trials, for binomial targets.
        """
        if self.model is None:
            raise UnsupportedError("There is nothing to predict from before the first row. Call learn first.")
        X = read_inputs(X, num_dims=self.num_dims)
        return self.model.predict(X, self._totals(totals, X))

    def learn(self, X: Tensor, y: Tensor, totals: Tensor | None = None) -> tuple["StreamLearner", LearnInfo]:
        """Learn from rows.

        Args:
            X: Inputs `(n, d)`; tensors and NumPy arrays are converted to double precision.
            y: Targets `(n,)`.
            totals: Numbers of trials `(n,)`, for binomial targets.

        Returns:
            The learner after these rows, and diagnostics.
        """
        rows = read_rows(X, y, totals, num_dims=self.num_dims)
        rows = Rows(rows.inputs, rows.targets, self._totals(rows.totals, rows.inputs))
        likelihood_of(self.settings.starting_likelihood, rows.totals).check_targets(rows.targets)
        learner, start = self, 0
        while start < rows.num_rows:
            learner = learner._skipping_fits(rows.num_rows - start)
            stop = min(start + learner._num_at_once(), rows.num_rows)
            learner = learner._learn_block(rows.part(start, stop))
            start = stop
        info = LearnInfo(
            num_outside=learner.num_outside - self.num_outside,
            refits=tuple(each for each in learner.refits if each.num_seen > self.num_seen),
        )
        return learner, info

    def reset(self) -> "StreamLearner":
        """Forget what the rows said, and keep units, hyperparameters and inducing points."""
        if self.model is None or not self.is_warm:
            return self.rewarm()
        gp = _prior_of(self.model)
        return replace(self, model=replace(self.model, gp=gp), anchor=None, buffer=None)

    def rewarm(self) -> "StreamLearner":
        """Begin again with a warm-up; only the count of rows goes on. Until the next row the model still predicts."""
        return replace(self, anchor=None, buffer=None, num_since_start=0, next_refit=1)

    def _skipping_fits(self, num_waiting: int) -> "StreamLearner":
        """During the warm-up, pass over fits that later ones would replace before anybody could see them."""
        due, settings = self.next_refit, self.settings
        while due is not None and due < settings.warmup:
            later = settings.next_refit(due)
            if later is None or later > self.num_since_start + num_waiting:
                break
            due = later
        return self if due == self.next_refit else replace(self, next_refit=due)

    def _num_at_once(self) -> int:
        """How many rows can be learned before something else is to be done."""
        until_fit = None if self.next_refit is None else self.next_refit - self.num_since_start
        if until_fit is not None and not self.is_warm:
            return until_fit
        most = _MOST_ROWS_AT_ONCE if until_fit is None else min(_MOST_ROWS_AT_ONCE, until_fit)
        if self.settings.half_life is None:
            return most
        return max(1, min(most, int(self.settings.half_life / _BLOCKS_OF_HALF_LIFE)))

    def _learn_block(self, rows: Rows) -> "StreamLearner":
        n = rows.num_rows
        buffer = rows if self.buffer is None else self.buffer.append(rows)
        learner = replace(self, buffer=buffer, num_seen=self.num_seen + n, num_since_start=self.num_since_start + n)
        is_due = learner.num_since_start == learner.next_refit
        if is_due and learner.num_since_start <= learner.settings.warmup:
            return learner._warm_up()
        learner = learner._absorb(rows)
        if is_due:
            learner = learner._refit()
        return learner._fold()

    def _warm_up(self) -> "StreamLearner":
        assert self.buffer is not None
        model = first_fit(self.buffer, self.settings)
        return replace(self, model=model, next_refit=self.settings.next_refit(self.num_since_start))

    def _absorb(self, rows: Rows) -> "StreamLearner":
        assert self.model is not None
        model = self.model
        num_outside = model.num_outside(rows.inputs) if self.is_warm else 0
        scaled = model.scaled(rows)
        gp = self._aged(model.gp, rows.num_rows)
        gp, _ = absorb_rows(gp, scaled, model, num_inducing=self._num_inducing(gp, scaled))
        return replace(self, model=replace(model, gp=gp), num_outside=self.num_outside + num_outside)

    def _aged(self, gp: SparseGP, num_rows: int) -> SparseGP:
        """A belief as it is after later rows, with a half-life."""
        half_life = self.settings.half_life
        return gp if half_life is None else gp.forget(0.5 ** (num_rows / half_life))

    def _num_inducing(self, gp: SparseGP, rows: Rows) -> int:
        """How many inducing points there should be after these rows."""
        m, most = gp.num_inducing, self.settings.most_inducing
        if m >= most or self.settings.num_inducing != "auto":
            return most
        assert self.model is not None
        likelihood = likelihood_of(self.model.likelihood, rows.totals)
        return min(most, m + num_unexplained(gp, likelihood, rows.inputs, rows.targets))

    def _refit(self) -> "StreamLearner":
        assert self.model is not None
        assert self.buffer is not None
        anchor = _prior_of(self.model) if self.anchor is None else self.anchor
        model, report = refit(self.model, anchor, self.buffer, settings=self.settings, num_seen=self.num_seen)
        return replace(
            self,
            model=model,
            next_refit=self.settings.next_refit(self.num_since_start),
            refits=(*self.refits, report)[-_MOST_REPORTS:],
        )

    def _fold(self) -> "StreamLearner":
        """Summarise the older half of a full buffer in the anchor."""
        buffer, model = self.buffer, self.model
        assert buffer is not None
        assert model is not None
        if not self.is_warm or buffer.num_rows < self.settings.num_buffered:
            return self
        half = buffer.num_rows // 2
        anchor = _prior_of(model) if self.anchor is None else self._aged(self.anchor, half)
        anchor, _ = absorb_rows(
            anchor,
            model.scaled(buffer.part(0, half)),
            model,
            inducing=model.gp.inducing_points,
            kernel=model.gp.kernel,
        )
        return replace(self, anchor=anchor, buffer=buffer.part(half, buffer.num_rows))

    def _totals(self, totals: Tensor | None, X: Float[Tensor, "n d"]) -> Float[Tensor, " n"] | None:
        """Numbers of trials, which a binomial likelihood by name needs and others must not have."""
        if totals is not None:
            if self.settings.likelihood != "binomial":
                raise OptionError(
                    f"totals are numbers of trials, but the likelihood is {self.settings.likelihood!r}. "
                    "Leave them out, or choose likelihood='binomial'."
                )
            return torch.as_tensor(totals, dtype=torch.float64).expand(len(X))
        if self.settings.likelihood == "binomial":
            raise OptionError(
                "The likelihood is 'binomial', but there are no totals. Pass the number of trials of each row, or "
                "likelihood=streamgp.likelihoods.Binomial(N) if it is the same for all."
            )
        return None


def _prior_of(model: StreamModel) -> SparseGP:
    """The belief before any data, at the model's inducing points."""
    return SparseGP.from_prior(model.gp.kernel, model.gp.inducing_points, mean=model.gp.mean)
