"""Learning the hyperparameters of a stream, and its rows anew under them."""

import math
import warnings
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple, final

import torch
from gpytorch.means import ConstantMean
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import NumericalError, StreamGPWarning, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.streaming.bank import Bank
from streamgp.streaming.experts import Experts
from streamgp.streaming.hyperparameters import LearnedKernel, default_kernel, learn_hyperparameters, scaled_to
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.model import StreamModel
from streamgp.streaming.placement import place_points
from streamgp.streaming.points import Usage
from streamgp.streaming.reach import Reach
from streamgp.streaming.robust import learn_robustly
from streamgp.streaming.rows import Rows, likelihood_of
from streamgp.streaming.settings import FEW_ROWS, StreamSettings
from streamgp.streaming.units import Units
from streamgp.training import fit

__all__ = ["RefitReport", "Relearned", "relearn"]

# Rows for each inducing point, the latest ones, that hyperparameters are learned from: where points are too few for a
# longer part of the stream, it would look like noise.
_ROWS_OF_POINT = 20
# Of these, so many for each point are used, evenly spread: the cost of a fit is theirs.
_FITTED_OF_POINT = 10
# How far beyond the inputs so far trends go, in widths of their range; rates are exponentials of latent values.
_MARGIN_OF_REALS, _MARGIN = 1.0, 0.5
# The largest noise variance that a fit may find, in units of the expected squared error of this many latest rows.
_MOST_NOISE, _NUM_EXPECTED = 2.0, 100
# Hyperparameters are learned from as many of the latest rows as the experts' half-lives say, but at least these.
_LEAST_WINDOW = 200
# Where counts are rare an observation says so little that a level compared with it could go anywhere in a few rows.
_MOST_LEVEL_NOISE = 1.0
_FIT_ITERATIONS = 30


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


class _Learned(NamedTuple):
    hyperparameters: LearnedKernel
    likelihood: AbstractLikelihood
    constant: Float[Tensor, " c"]
    gain: float
    outliers: tuple[float, float] | None = None


def relearn(
    buffer: Rows,
    settings: StreamSettings,
    *,
    before: StreamModel | None,
    anchor: Bank | None = None,
    is_new: bool = True,
    is_searching: bool = True,
    is_flat: bool = True,
    is_exclusive: bool = False,
    num_unjudged: int = 0,
    halfway: int | None = None,
) -> Relearned:
    """Learn hyperparameters, and then the rows under them, one after the other, as if they came again.

    Args:
        buffer: The rows, in the user's units.
        settings: Options.
        before: The model so far, whose weights of experts go on, and from whose hyperparameters one search starts.
        anchor: What was believed before the buffer.
        is_new: Whether units are chosen anew.
        is_searching: Whether hyperparameters are learned.
        is_flat: See `StreamModel`.
        is_exclusive: See `StreamModel`.
        num_unjudged: How many of the latest rows experts were not yet judged by.
        halfway: Before which row the bank is kept.
    """
    num_outputs = len(buffer.targets)
    experts = settings.experts(num_outputs)
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
    learned = _learn(rows, settings, old, window, anchor, is_searching=is_searching)
    # Rows from before a change look like noise: predictions of late have been better than that.
    while is_searching and (_noise(learned.likelihood) or 0.0) > most_noise:
        is_searching, window = window > _LEAST_WINDOW, max(_LEAST_WINDOW, window // 2)
        learned = _learn(rows, settings, old, window, anchor, is_searching=is_searching)
    bank = Bank.from_prior(
        experts,
        learned.hyperparameters.kernel,
        learned.hyperparameters.inducing_points,
        constant=learned.constant,
        level_noise=_level_noise(learned, rows),
    )
    if anchor is not None:
        bank = anchor.carried(bank)
    if learned.outliers is not None:
        mixture = mixture.expecting(mixture.outliers.found(*learned.outliers))
    usage = Usage.none(bank.num_inducing) if before is None else before.usage.for_points(bank.num_inducing)
    reach = Reach.of(buffer.inputs, margin=_margin(experts, settings))
    model = StreamModel(
        bank,
        usage,
        mixture,
        learned.likelihood,
        learned.hyperparameters,
        units,
        reach if is_new or before is None else reach.joined(before.reach),
        is_exclusive,
        is_flat,
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
        model = model.learned(scaled, seen, settings, mixture=mixture, plausible=plausible, is_following=False)
    return Relearned(model, kept, gain)


def _expected_error(model: StreamModel, rows: Rows) -> float:
    """The mean squared error of the latest rows, as the model expects it after its errors so far."""
    if not model.likelihood.is_gaussian:
        return math.inf
    noise = _noise(model.likelihood) or 0.0
    variance = model.bank.see(rows.inputs[-_NUM_EXPECTED:]).variance.mean(-1) + noise
    return float((model.mixture.weights[:, None] * model.mixture.scale * variance).sum(0).max())


def _margin(experts: Experts, settings: StreamSettings) -> float:
    """How far predictions go beyond the inputs so far: anywhere without trends, which would go on for ever."""
    if not bool(experts.slopes.any()):
        return math.inf
    return _MARGIN_OF_REALS if settings.is_target_scaled else _MARGIN


def _window(num_rows: int, half_lives: Float[Tensor, " e"], mixture: Mixture) -> int:
    """How many of the latest rows tell of the stream as it is now, by the experts that are believed."""
    longest = max(num_rows, _LEAST_WINDOW)
    typical = float((mixture.weights * half_lives.clamp(1.0, longest).log()).sum().exp())
    return min(num_rows, max(_LEAST_WINDOW, round(typical)))


def _learn(
    rows: Rows,
    settings: StreamSettings,
    before: LearnedKernel | None,
    window: int,
    anchor: Bank | None,
    *,
    is_searching: bool,
) -> _Learned:
    """Hyperparameters, likelihood and constants from the latest rows."""
    recent = rows.part(rows.num_rows - window, rows.num_rows)
    likelihood = settings.starting_likelihood
    constant = _constant(recent, likelihood)
    num_dims = rows.inputs.shape[-1]
    kernel = default_kernel(num_dims) if settings.kernel is None else settings.kernel
    start = LearnedKernel(kernel, _noise(likelihood) or 0.1, recent.inputs[:1]) if before is None else before
    most = settings.most_inducing
    part = recent.part(max(0, window - max(_LEAST_WINDOW, _ROWS_OF_POINT * most)), window)
    part = part.thinned(max(_LEAST_WINDOW, _FITTED_OF_POINT * most))
    is_class = likelihood.outcome_kind == "class"
    gain, outliers = math.nan, None
    if is_searching and recent.num_rows >= FEW_ROWS and _is_varied(part.targets):
        try:
            if not (likelihood.is_gaussian or is_class):
                return _fitted(part, settings, kernel if before is None else before.kernel)
            is_noise_known = likelihood.is_gaussian and not likelihood.learnable()
            search = partial(
                learn_hyperparameters,
                kernel=kernel,
                before=before,
                noise_variance=_noise(likelihood) if is_noise_known else None,
                num_inducing=settings.most_inducing,
                seed=settings.seed,
                is_thorough=rows.num_rows >= settings.warmup,
            )
            if settings.has_outliers:
                found = learn_robustly(part.inputs, part.targets, search)
                start, gain, outliers = found.learned, found.gain, (found.share, found.variance)
                constant = found.mean if found.share else constant
            else:
                start, gain = search(part.inputs, part.targets - part.targets.mean(-1, keepdim=True))
            if is_class:
                start = scaled_to(start, 1.0)
        except NumericalError:
            pass  # what was learned before goes on
    noise = start.noise_variance if likelihood.is_gaussian else 1.0
    start = replace(start, inducing_points=place_points(start.kernel, recent.inputs, anchor, settings, noise))
    if likelihood.is_gaussian and likelihood.learnable():
        likelihood = Gaussian(torch.tensor(start.noise_variance, dtype=torch.float64))
    return _Learned(start, likelihood, constant, gain, outliers)


def _fitted(rows: Rows, settings: StreamSettings, kernel: object) -> _Learned:
    """The same by `fit`, for likelihoods that need more than a closed form."""
    if len(rows.targets) > 1:
        raise UnsupportedError(
            f"There are {len(rows.targets)} outputs, but the likelihood is {settings.likelihood!r}. Several outputs "
            "are learned together with Gaussian noise only; use one estimator for each."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamGPWarning)  # a stream goes on; what is wrong shows in its metrics
        result = fit(
            rows.inputs,
            rows.targets.squeeze(0),
            likelihood=likelihood_of(settings.starting_likelihood, rows.total_count),
            kernel=settings.kernel,
            num_inducing=settings.most_inducing,
            learn_inducing=False,
            max_iterations=_FIT_ITERATIONS,
            generator=torch.Generator().manual_seed(settings.seed),
        )
    mean = result.gp.mean
    constant = mean.constant.detach().double() if isinstance(mean, ConstantMean) else torch.zeros(())
    # Constants of rows, such as numbers of trials, come with the rows.
    likelihood = settings.starting_likelihood if result.likelihood.has_row_constants else result.likelihood
    found = LearnedKernel(result.gp.kernel, math.nan, result.gp.inducing_points)
    return _Learned(found, likelihood, constant.reshape(1), math.nan)


def _is_varied(targets: Float[Tensor, "c n"]) -> bool:
    return bool((targets.amax(-1) > targets.amin(-1)).any())


def _noise(likelihood: AbstractLikelihood) -> float | None:
    noise = likelihood.gaussian_noise_variance
    return None if noise is None else float(noise)


def _constant(rows: Rows, likelihood: AbstractLikelihood) -> Float[Tensor, " c"]:
    """What the latent function is expected to be before its inputs are known."""
    if likelihood.is_gaussian:
        return rows.targets.mean(-1)
    if likelihood.outcome_kind == "class":
        return likelihood.inverse_response((rows.targets.sum(-1) + 1.0) / (rows.num_rows + 2.0))
    return torch.zeros(len(rows.targets), dtype=torch.float64)


def _level_noise(learned: _Learned, rows: Rows) -> float:
    """The noise variance with which steps of a level are compared: the inverse of the expected curvature."""
    likelihood = learned.likelihood
    if (noise := _noise(likelihood)) is not None:
        return noise
    mean = learned.constant.unsqueeze(-1).expand_as(rows.targets)
    _, curvature = likelihood_of(likelihood, rows.total_count).expected_derivatives(
        mean, torch.ones_like(mean), rows.targets
    )
    found = 1.0 / max(float(-curvature.mean()), 1e-3)
    return found if likelihood.outcome_kind == "class" else min(found, _MOST_LEVEL_NOISE)
