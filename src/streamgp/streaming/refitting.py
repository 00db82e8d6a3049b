"""Learning the hyperparameters of a stream, and its rows anew under them."""

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple, final

from jaxtyping import Float
from torch import Tensor

from streamgp.streaming.bank import Bank
from streamgp.streaming.carrying import carry
from streamgp.streaming.experts import Experts
from streamgp.streaming.fitting import LEAST_WINDOW, fit_latest
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.model import StreamModel
from streamgp.streaming.points import Usage
from streamgp.streaming.reach import Reach
from streamgp.streaming.rows import Rows
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.units import Units

__all__ = ["RefitReport", "Relearned", "is_settled", "relearn"]

# How far beyond the inputs so far trends go, in widths of their range; rates are exponentials of latent values.
_MARGIN_OF_REALS, _MARGIN = 1.0, 0.5
# The largest noise variance that a fit may find, in units of the expected squared error of this many latest rows.
_MOST_NOISE, _NUM_EXPECTED = 2.0, 100
# How large squared errors may be, in units of what is expected, where nothing has changed.
_MOST_SETTLED = 1.25
# Rows from which on refits may wait, in sizes of the buffer.
_NUM_BUFFERS = 2


@final
@dataclass(frozen=True)
class RefitReport:
    """What became of a refit.

    Attributes:
        num_seen: Number of rows of the stream when it happened.
        is_kept: Whether new hyperparameters were taken. Inducing points are chosen anew in any case.
        gain: What they gained in the bound on the log marginal likelihood of the rows, for each value; NaN where that
            was not compared.
        reason: Why they were not taken; empty if they were.
    """

    num_seen: int
    is_kept: bool
    gain: float
    reason: str = ""


class Relearned(NamedTuple):
    """A model that has learned all rows of a buffer anew.

    Attributes:
        model: The model.
        halfway: Its bank before some row in the buffer; None if none was asked for.
        gain: See `RefitReport`.
    """

    model: StreamModel
    halfway: Bank | None
    gain: float


def is_settled(model: StreamModel, settings: StreamSettings, last: int, now: int) -> bool:
    """Whether a refit can wait: since the last one, nothing has changed that hyperparameters would follow.

    Where the stream stands still, experts that forget nothing are believed and errors are as large as expected. No
    refit waits for longer than until the buffer is full of rows that came since, or before there are rows for several
    buffers: until then, more of them tell more.

    Args:
        model: The model.
        settings: Options; refits of a policy that a user states do not wait.
        last: After how many rows the last refit was.
        now: How many rows there are.
    """
    size = settings.buffer_size
    if settings.refit != "auto" or last < _NUM_BUFFERS * size or now >= last + size:
        return False
    if settings.room(last).most < settings.room(now).most:
        return False  # with more points there is more to learn from the same rows
    mixture = model.mixture
    errors = float((mixture.weights[:, None] * mixture.scale).sum(0).max())
    return model.bank.experts.are_still(mixture.weights) and errors <= _MOST_SETTLED


def relearn(
    buffer: Rows,
    settings: StreamSettings,
    *,
    before: StreamModel | None,
    anchor: Bank | None = None,
    past: Rows | None = None,
    is_new: bool = True,
    is_searching: bool = True,
    is_single_output: bool = True,
    is_multiclass: bool = False,
    num_unjudged: int = 0,
    halfway: int | None = None,
    num_rows: int | None = None,
) -> Relearned:
    """Learn hyperparameters, and then the rows under them, one after the other, as if they came again.

    Args:
        buffer: The rows, in the user's units.
        settings: Options.
        before: The model so far, whose weights of experts go on, and from whose hyperparameters one search starts.
        anchor: What was believed before the buffer.
        past: Some of the rows before the buffer, in the user's units.
        is_new: Whether units are chosen anew.
        is_searching: Whether hyperparameters are learned.
        is_single_output: See `StreamModel`.
        is_multiclass: See `StreamModel`.
        num_unjudged: How many of the latest rows experts were not yet judged by.
        halfway: Before which row the bank is kept.
        num_rows: Number of rows of the stream; as many as there are in the buffer by default.
    """
    num_outputs = len(buffer.targets)
    experts = settings.experts(num_outputs, buffer.inputs.shape[-1])
    if is_new or before is None:
        units = Units.of(buffer, is_target_scaled=settings.is_target_scaled, is_bent=settings.kernel is None)
    else:
        units = before.units.for_outputs(num_outputs)
    rows = units.rows(buffer)
    mixture = Mixture.even(len(experts), num_outputs, is_scaled=settings.half_life == "auto")
    if before is not None and before.mixture.squared_errors.shape == mixture.squared_errors.shape:
        mixture = before.mixture
    # Where other columns are bent there are other lengthscales.
    is_comparable = before is not None and len(before.units.input_scale) == len(units.input_scale)
    old = before.hyperparameters if before is not None and is_comparable else None
    window = _window(rows.num_rows, experts.half_lives, mixture)
    most_noise = math.inf if is_new or before is None else _MOST_NOISE * _expected_error(before, rows)
    num_points = 0 if before is None else before.bank.num_inducing
    room = settings.room(rows.num_rows if num_rows is None else num_rows, num_points)
    remembered = None
    if settings.starting_likelihood.is_gaussian:  # beliefs are in the units of targets there alone
        remembered = _remembered(anchor, mixture, None if past is None else units.rows(past))
    current = None if before is None or is_new or not is_comparable else before.bank.inducing_points
    fit = partial(fit_latest, rows, settings, old, anchor=anchor, room=room, remembered=remembered, current=current)
    learned = fit(window, is_searching=is_searching)
    # Rows from before a change look like noise: predictions of late have been better than that.
    while is_searching and learned.noise_variance > most_noise:
        is_searching, window = window > LEAST_WINDOW, max(LEAST_WINDOW, window // 2)
        learned = fit(window, is_searching=is_searching)
    bank = Bank.from_prior(
        experts,
        learned.hyperparameters.kernel,
        learned.hyperparameters.inducing_points,
        constant=learned.constant,
        level_noise=learned.level_noise(rows),
    )
    if anchor is not None:
        bank = carry(anchor, bank)
    if learned.outliers is not None:
        mixture = mixture.expecting(mixture.outliers.found(*learned.outliers))
    reach = Reach.of(buffer.inputs, margin=_margin(experts, settings))
    model = StreamModel(
        bank,
        Usage.none(bank.num_inducing),
        mixture,
        learned.likelihood,
        learned.hyperparameters,
        units,
        reach if is_new or before is None else reach.joined(before.reach),
        is_multiclass,
        is_single_output,
    )
    return _replayed(model, buffer, settings, rows.num_rows - num_unjudged, halfway, learned.gain)


def _replayed(
    model: StreamModel, buffer: Rows, settings: StreamSettings, judged_from: int, halfway: int | None, gain: float
) -> Relearned:
    """Learn the rows of a buffer, for which the inducing points were chosen: none moves."""
    n, kept, size = buffer.num_rows, None, settings.num_at_once
    stops = sorted({*range(0, n, size), n, judged_from, *([] if halfway is None else [halfway])})
    for start, stop in pairwise(stops):
        if start == halfway:
            kept = model.bank
        part = buffer.part(start, stop)
        scaled = model.units.rows(part)
        seen = model.bank.see(scaled.inputs)
        prediction = model.prediction(seen, part.total_count)
        if start >= judged_from:
            mixture, _, plausible = model.judge(prediction, part)
        else:
            plausible, outliers = prediction.plausibility(part.targets)
            mixture = model.mixture.expecting(outliers)
        model = model.learned(scaled, seen, settings, mixture=mixture, plausible=plausible)
    return Relearned(replace(model, usage=model.usage.placed()), kept, gain)


def _remembered(anchor: Bank | None, mixture: Mixture, past: Rows | None) -> Rows | None:
    """What is known of the stream from before the buffer, as rows; None where it has changed since.

    Hyperparameters that suit the latest rows alone may tie together too little of what was learned elsewhere, and so
    forget it: in a stream in order of an input, say; and inducing points are learned for the rows that are shown.

    Args:
        anchor: What was believed before the buffer.
        mixture: Whether experts that forget nothing are believed.
        past: Rows from before the buffer; without them, what is believed at inducing points stands for them.
    """
    if anchor is None or not anchor.experts.is_trusted(mixture.lasting_log_weights):
        return None
    if past is not None:
        return past
    Z = anchor.inducing_points
    weights = anchor.experts.remembering(mixture.lasting_log_weights)
    return Rows(Z.numpy(), anchor.see(Z.numpy()).mean[int(weights.argmax())], None)


def _expected_error(model: StreamModel, rows: Rows) -> float:
    """The mean squared error of the latest rows, as the model expects it after its errors so far."""
    if not model.likelihood.is_gaussian:
        return math.inf
    noise = model.likelihood.gaussian_noise_variance
    assert noise is not None
    variance = model.bank.see(rows.inputs[-_NUM_EXPECTED:]).variance.mean(-1) + float(noise)
    return float((model.mixture.weights[:, None] * model.mixture.scale * variance).sum(0).max())


def _margin(experts: Experts, settings: StreamSettings) -> float:
    """How far predictions go beyond the inputs so far: anywhere without trends, which would go on for ever."""
    if not bool(experts.slopes.any()):
        return math.inf
    return _MARGIN_OF_REALS if settings.is_target_scaled else _MARGIN


def _window(num_rows: int, half_lives: Float[Tensor, " e"], mixture: Mixture) -> int:
    """How many of the latest rows tell of the stream as it is now, by the experts that are believed."""
    longest = max(num_rows, LEAST_WINDOW)
    typical = math.exp(float((mixture.weights * half_lives.clamp(1.0, longest).log().numpy()).sum()))
    return min(num_rows, max(LEAST_WINDOW, round(typical)))
