"""Learning the hyperparameters of a stream."""

import math
import warnings
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import final

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import AbsorbInfo, SparseGP
from streamgp.errors import NumericalError, StreamGPWarning
from streamgp.likelihoods import AbstractLikelihood, Binomial, Gaussian
from streamgp.streaming.model import StreamModel, scaling_of
from streamgp.streaming.rows import Rows, likelihood_of
from streamgp.streaming.settings import StreamSettings
from streamgp.training import FitResult, fit

__all__ = ["RefitReport", "absorb_rows", "first_fit", "refit"]

# Share of the buffer, its latest rows, that judges a refit.
_HELD_BACK = 0.2
# Iterations of a refit from the hyperparameters so far, and of one from scratch.
_WARM_ITERATIONS, _FRESH_ITERATIONS = 30, 60
# Inducing points that were learned give way to new inputs less readily than by what is known at them.
_RETENTION = 3.0


@final
@dataclass(frozen=True)
class RefitReport:
    """What became of a refit.

    Attributes:
        num_seen: Number of rows of the stream when it happened.
        is_kept: Whether the new hyperparameters were taken.
        gain: What they gained in mean log predictive density of the latest rows, which they had not seen; NaN if they
            could not be learned.
        reason: Why they were not taken; empty if they were.
    """

    num_seen: int
    is_kept: bool
    gain: float
    reason: str = ""


def first_fit(rows: Rows, settings: StreamSettings) -> StreamModel:
    """Learn everything, units included, from the first rows."""
    scaling = scaling_of(rows, is_target_scaled=settings.is_target_scaled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamGPWarning)  # a stream goes on; what is wrong shows in its metrics
        result = fit(
            scaling.inputs(rows.inputs),
            scaling.targets(rows.targets),
            likelihood=likelihood_of(settings.starting_likelihood, rows.totals),
            kernel=settings.kernel,
            num_inducing=settings.num_inducing,
            max_inducing=settings.max_inducing,
            generator=torch.Generator().manual_seed(settings.seed),
        )
    lower, upper = rows.inputs.amin(0), rows.inputs.amax(0)
    return StreamModel(result.gp, _likelihood_of_any_row(result, settings), scaling, lower, upper)


def refit(
    model: StreamModel, anchor: SparseGP, buffer: Rows, *, settings: StreamSettings, num_seen: int
) -> tuple[StreamModel, RefitReport]:
    """Learn hyperparameters and inducing points from the buffer and the belief about earlier rows.

    Twice: from the hyperparameters so far, and from scratch, as those of a stream that began in a corner of its domain
    can be a local optimum from which no later data leads away. The latest rows of the buffer are held back and judge.
    If they are predicted worse than with the old hyperparameters, all having seen the same rows, by more than the
    standard error of the difference, the model stays as it was.

    Args:
        model: The model so far.
        anchor: What is believed of the rows before the buffer.
        buffer: The rows since then, in the user's units.
        settings: Options of the stream.
        num_seen: Number of rows so far, for the report.

    Returns:
        The model with new hyperparameters, or the one that was given, and what happened.
    """
    rows = model.scaled(buffer)
    num_fitted = rows.num_rows - max(1, round(_HELD_BACK * rows.num_rows))
    fitted, held = rows.part(0, num_fitted), rows.part(num_fitted, rows.num_rows)
    try:
        old, _ = absorb_rows(anchor, fitted, model, inducing=model.gp.inducing_points, kernel=model.gp.kernel)
        reference = _log_densities(replace(model, gp=old), held)
        candidates = [_learn(model, anchor, fitted, settings, is_fresh=each) for each in (False, True)]
        best = max(candidates, key=lambda each: float(_log_densities(each, held).mean()))
        gains = _log_densities(best, held) - reference
        gain, error = float(gains.mean()), float(gains.std(correction=0)) / math.sqrt(len(gains))
        if not gain >= -error:
            return model, RefitReport(num_seen, False, gain, "the latest rows were predicted worse")
        gp, _ = absorb_rows(best.gp, held, best)
    except NumericalError as error:
        return model, RefitReport(num_seen, False, float("nan"), str(error))
    return replace(best, gp=gp), RefitReport(num_seen, True, gain)


def absorb_rows(
    gp: SparseGP,
    rows: Rows,
    model: StreamModel,
    *,
    inducing: str | Tensor = "pivoted",
    num_inducing: int | None = None,
    kernel: Kernel | None = None,
) -> tuple[SparseGP, AbsorbInfo]:
    """Absorb rows in the model's units; `kernel` says that `gp` may have another one, which it then takes over."""
    likelihood = likelihood_of(model.likelihood, rows.totals)
    is_gaussian = isinstance(likelihood, Gaussian)
    return gp.absorb(
        rows.inputs,
        rows.targets,
        noise_variance=likelihood.noise_variance if isinstance(likelihood, Gaussian) else None,
        likelihood=None if is_gaussian else likelihood,
        inducing=inducing,
        num_inducing=num_inducing,
        retention=_RETENTION,
        kernel=kernel,
        mean=None if kernel is None else model.gp.mean,
    )


def _learn(
    model: StreamModel, anchor: SparseGP, rows: Rows, settings: StreamSettings, *, is_fresh: bool
) -> StreamModel:
    likelihood = settings.starting_likelihood if is_fresh else model.likelihood
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamGPWarning)
        result = fit(
            rows.inputs,
            rows.targets,
            likelihood=likelihood_of(likelihood, rows.totals),
            kernel=settings.kernel if is_fresh else _to_be_learned(model.gp.kernel, settings.kernel),
            carried=anchor,
            start=None if is_fresh else model.gp,
            num_inducing=model.gp.num_inducing,
            max_iterations=_FRESH_ITERATIONS if is_fresh else _WARM_ITERATIONS,
            generator=torch.Generator().manual_seed(settings.seed),
        )
    return replace(model, gp=result.gp, likelihood=_likelihood_of_any_row(result, settings))


def _to_be_learned(kernel: Kernel, given: Kernel | None) -> Kernel:
    """A copy whose parameters are learned, but for those that the user froze."""
    copy = deepcopy(kernel)
    is_learned = {} if given is None else {name: each.requires_grad for name, each in given.named_parameters()}
    for name, parameter in copy.named_parameters():
        parameter.requires_grad_(is_learned.get(name, True))
    return copy.train()


def _likelihood_of_any_row(result: FitResult, settings: StreamSettings) -> AbstractLikelihood:
    """The fitted likelihood without the numbers of trials of the rows it was fitted to."""
    return settings.starting_likelihood if isinstance(result.likelihood, Binomial) else result.likelihood


def _log_densities(model: StreamModel, rows: Rows) -> Float[Tensor, " n"]:
    """Log predictive densities of rows in the model's units."""
    latent = model.gp.predict(rows.inputs)
    likelihood = likelihood_of(model.likelihood, rows.totals)
    return likelihood.log_predictive_density(latent.mean, latent.variance.clamp_min(0.0), rows.targets)
