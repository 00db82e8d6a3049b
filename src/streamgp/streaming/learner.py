"""Learning from a stream in constant time and memory."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import OptionError, UnsupportedError
from streamgp.processes import sent_by_value
from streamgp.streaming.bank import Bank
from streamgp.streaming.model import StreamModel
from streamgp.streaming.past import sample_past
from streamgp.streaming.prediction import StreamPrediction
from streamgp.streaming.refitting import RefitReport, is_settled, relearn
from streamgp.streaming.rows import Rows, likelihood_of, read_inputs, read_rows
from streamgp.streaming.settings import StreamSettings
from streamgp.threads import limit_threads

__all__ = ["Array", "Halfway", "LearnInfo", "Predicted", "StreamLearner"]

# What streams take: tensors and NumPy arrays, converted to double precision.
Array = Tensor | np.ndarray

_MOST_REPORTS = 32
# Where so many of the latest rows were is where the stream is now.
_NUM_LATEST = 64


class Predicted(NamedTuple):
    """Rows that were learned together, and what was predicted of them before.

    Attributes:
        rows: The rows, in the user's units.
        prediction: The prediction; None if nothing was known before them.
        log_densities: Of the rows, by each expert; None with it.
    """

    rows: Rows
    prediction: StreamPrediction | None = None
    log_densities: Float[np.ndarray, "e n"] | None = None


class LearnInfo(NamedTuple):
    """Diagnostics of learning some rows.

    Attributes:
        num_outside: How many inputs lay far outside the range of the warm-up.
        refits: What became of refits on the way.
    """

    num_outside: int = 0
    refits: tuple[RefitReport, ...] = ()


class Halfway(NamedTuple):
    """What was believed at some row of the buffer.

    Attributes:
        bank: The bank before it.
        num_rows: How many rows of the buffer are before it.
    """

    bank: Bank
    num_rows: int


@sent_by_value
@final
@dataclass(frozen=True, eq=False)
class StreamLearner:
    """What is known of a stream: a frozen value of bounded size.

    During the warm-up all rows are kept, and units, hyperparameters and inducing points are learned anew each time
    their number has doubled. After it the units stay, rows are absorbed by a bank of experts, and hyperparameters are
    learned by policy from the latest rows, the buffer. The bank then learns the buffer anew, starting from what it
    believed before its first row, the anchor.

    Attributes:
        settings: Options.
        model: Belief about all rows so far, with its units; None before the first.
        anchor: What was believed before the first row of the buffer; None while that was nothing.
        halfway: What was believed in its middle, the next anchor.
        buffer: The latest rows.
        num_seen: Number of rows so far.
        num_since_start: Number of rows since the warm-up began.
        next_refit: At which of these hyperparameters are learned next; None for never.
        num_outside: Inputs far outside the range of the warm-up so far.
        refits: The latest reports.
        is_multiclass: Whether outputs are classes of which one is true.
        past: Some of the rows before the buffer, evenly spread; None while there were none.
    """

    settings: StreamSettings
    model: StreamModel | None = None
    anchor: Bank | None = None
    halfway: Halfway | None = None
    buffer: Rows | None = None
    num_seen: int = 0
    num_since_start: int = 0
    next_refit: int | None = 1
    num_outside: int = 0
    refits: tuple[RefitReport, ...] = ()
    is_multiclass: bool = False
    past: Rows | None = None

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up is over."""
        return self.num_since_start >= self.settings.warmup

    @property
    def num_dims(self) -> int | None:
        """Number of input columns; None before the first row."""
        return None if self.model is None else self.model.units.lower.shape[-1]

    @property
    def num_outputs(self) -> int | None:
        """Number of outputs, zero for targets without an axis for them; None before the first row."""
        if self.model is None:
            return None
        return 0 if self.model.is_single_output else len(self.model.bank.constant)

    @property
    def latest(self) -> Rows | None:
        """The latest rows; None where these are too few to tell where the stream is, or for one expert."""
        if self.model is None or len(self.model.bank.experts) == 1:
            return None
        if self.buffer is None or (n := self.buffer.num_rows) < _NUM_LATEST:
            return None
        return self.buffer.part(n - _NUM_LATEST, n)

    def predict(self, X: Array, total_count: Array | None = None) -> StreamPrediction:
        """Predict targets at inputs `(n, d)`, in the user's units; there must have been a row to learn from.

        Args:
            X: Inputs.
            total_count: Numbers of trials, for binomial targets.
        """
        if self.model is None:
            raise UnsupportedError("There is nothing to predict from before the first row. Call learn first.")
        inputs = read_inputs(X, num_dims=self.num_dims)
        bank = self.model.bank
        with limit_threads(len(inputs) * len(bank.experts) * bank.num_inducing**2):
            return self.model.predict(inputs, self._total_count(total_count, inputs), latest=self.latest)

    @limit_threads()
    def learn(
        self,
        X: Array,
        y: Array,
        total_count: Array | None = None,
        *,
        on_predicted: Callable[[Predicted], None] | None = None,
    ) -> tuple["StreamLearner", LearnInfo]:
        """Learn from rows.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`, or `(n, c)` for several outputs.
            total_count: Numbers of trials `(n,)`, for binomial targets.
            on_predicted: Is shown, part by part, what was predicted of the rows before they were learned.

        Returns:
            The learner after these rows, and diagnostics.
        """
        rows = read_rows(X, y, total_count, num_dims=self.num_dims, num_outputs=self.num_outputs)
        total_count = self._total_count(rows.total_count, rows.inputs)
        if not self.settings.is_target_scaled:  # those are finite, and any number will do
            likelihood_of(self.settings.starting_likelihood, total_count).check_targets(rows.tensors[1])
        is_single_output = np.ndim(y) == 1
        learner, start = self, 0
        while start < rows.num_rows:
            learner = learner._skipping_fits(rows.num_rows - start)
            stop = min(start + learner._num_at_once(), rows.num_rows)
            part = rows if stop - start == rows.num_rows else rows.part(start, stop)
            learner, predicted = learner._learn_block(part, is_single_output=is_single_output)
            if on_predicted is not None:
                on_predicted(predicted)
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
        model, bank = self.model, self.model.bank
        fresh = Bank.from_prior(
            bank.experts,
            bank.process.prior.kernel,
            bank.inducing_points,
            constant=bank.constant,
            level_noise=bank.level_noise,
        )
        model = replace(model, bank=fresh, usage=model.usage.for_points(fresh.num_inducing))
        return replace(self, model=model, anchor=None, halfway=None, buffer=None, past=None)

    def rewarm(self) -> "StreamLearner":
        """Begin again with a warm-up; only the count of rows goes on. Until the next row the model still predicts."""
        return replace(self, anchor=None, halfway=None, buffer=None, past=None, num_since_start=0, next_refit=1)

    @limit_threads()
    def relearned(self) -> "StreamLearner":
        """Learn the rows in the buffer anew, units included; what was believed before them is lost."""
        assert self.buffer is not None
        assert self.model is not None
        learned = relearn(
            self.buffer,
            self.settings,
            before=None,
            is_single_output=self.model.is_single_output,
            is_multiclass=self.is_multiclass,
            num_unjudged=self.buffer.num_rows,
            num_rows=self.num_since_start,
        )
        return replace(self, model=learned.model, anchor=None, halfway=None, past=None)

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
        most = self.settings.num_at_once
        return most if until_fit is None else min(most, until_fit)

    def _learn_block(self, rows: Rows, *, is_single_output: bool) -> tuple["StreamLearner", Predicted]:
        """Learn rows; returns what was predicted of them before, too."""
        n, model = rows.num_rows, self.model
        buffer = rows.copy() if self.buffer is None else self.buffer.append(rows)
        num_since_start = self.num_since_start + n
        is_due = num_since_start == self.next_refit
        if model is None:
            learner = self._after(n, model, buffer)
            return learner._relearn(is_single_output=is_single_output, num_unjudged=n), Predicted(rows)
        scaled = model.units.rows(rows)
        seen = model.bank.see(scaled.inputs)
        reach = model.reach.extended(rows.inputs)
        near = rows.inputs if reach is model.reach else model.reach.limit(rows.inputs)
        prediction = model.prediction(seen, rows.total_count)
        if near is not rows.inputs:
            prediction = model.predict(near, rows.total_count)
        mixture, densities, plausible = model.judge(prediction, rows)
        predicted = Predicted(rows, prediction, densities)
        if is_due and not self.is_warm:
            learner = self._after(n, replace(model, mixture=mixture), buffer)
            return learner._relearn(is_single_output=is_single_output, num_unjudged=0), predicted
        num_outside = model.units.num_outside(rows.inputs) if self.is_warm else 0
        room = self.settings.room(self.num_since_start, model.bank.num_inducing)
        model = model.learned(scaled, seen, self.settings, mixture=mixture, plausible=plausible, reach=reach, room=room)
        learner = self._after(n, model, buffer, num_outside)
        if is_due and learner._is_settled():
            learner = replace(learner, next_refit=self.settings.next_refit(num_since_start))
        elif is_due:
            learner = learner._relearn(is_single_output=is_single_output, num_unjudged=0)
        return learner._fold(), predicted

    def _is_settled(self) -> bool:
        """Whether a refit would find what the last one found."""
        if self.model is None or not self.refits:
            return False
        last = self.refits[-1].num_seen - self.num_seen + self.num_since_start
        return is_settled(self.model, self.settings, last, self.num_since_start)

    def _after(self, num_rows: int, model: StreamModel | None, buffer: Rows, num_outside: int = 0) -> "StreamLearner":
        """With a model and a buffer after more rows; `replace` takes longer than a small matrix product."""
        return StreamLearner(
            self.settings,
            model,
            self.anchor,
            self.halfway,
            buffer,
            self.num_seen + num_rows,
            self.num_since_start + num_rows,
            self.next_refit,
            self.num_outside + num_outside,
            self.refits,
            self.is_multiclass,
            self.past,
        )

    def _relearn(self, *, is_single_output: bool, num_unjudged: int) -> "StreamLearner":
        """Learn hyperparameters, and the buffer anew."""
        assert self.buffer is not None
        model, is_new = self.model, self.num_since_start <= self.settings.warmup
        learned = relearn(
            self.buffer,
            self.settings,
            before=model,
            anchor=self.anchor,
            past=self.past,
            is_new=is_new,
            is_single_output=is_single_output,
            is_multiclass=self.is_multiclass,
            num_unjudged=num_unjudged,
            halfway=None if self.halfway is None else self.halfway.num_rows,
            num_rows=self.num_since_start,
        )
        learner = replace(self, model=learned.model, next_refit=self.settings.next_refit(self.num_since_start))
        if self.halfway is not None and learned.halfway is not None:
            learner = replace(learner, halfway=Halfway(learned.halfway, self.halfway.num_rows))
        if is_new:
            return learner
        is_kept = not learned.gain <= 0.0
        reason = "" if is_kept else "what was learned before is as good"
        report = RefitReport(self.num_seen, is_kept, learned.gain, reason)
        return replace(learner, refits=(*self.refits, report)[-_MOST_REPORTS:])

    def _fold(self) -> "StreamLearner":
        """Leave the older half of a full buffer to the anchor."""
        buffer, model, halfway = self.buffer, self.model, self.halfway
        assert buffer is not None
        assert model is not None
        if not self.is_warm:
            return self
        most = max(self.settings.buffer_size, self.settings.warmup)
        if halfway is not None and buffer.num_rows >= most:
            rest = buffer.part(halfway.num_rows, buffer.num_rows).copy()
            leaving, num_past = buffer.part(0, halfway.num_rows), self.num_since_start - buffer.num_rows
            return replace(
                self,
                buffer=rest,
                anchor=halfway.bank,
                halfway=Halfway(model.bank, rest.num_rows),
                past=sample_past(self.past, num_past, leaving),
            )
        if halfway is None and buffer.num_rows >= most // 2:
            return replace(self, halfway=Halfway(model.bank, buffer.num_rows))
        return self

    def _total_count(self, total_count: Array | None, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"] | None:
        """Numbers of trials, which a binomial likelihood by name needs and others must not have."""
        if total_count is not None:
            if self.settings.likelihood != "binomial":
                raise OptionError(
                    f"total_count holds numbers of trials, but the likelihood is {self.settings.likelihood!r}. "
                    "Leave it out, or choose likelihood='binomial'."
                )
            return torch.as_tensor(total_count, dtype=torch.float64).expand(len(X)).numpy()
        if self.settings.likelihood == "binomial":
            raise OptionError(
                "The likelihood is 'binomial', but there is no total_count. Pass the number of trials of each row, or "
                "likelihood=streamgp.likelihoods.Binomial(N) if it is the same for all."
            )
        return None
