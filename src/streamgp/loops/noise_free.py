"""Outcomes without noise are recognized: by what a model without noise makes of them."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import NumericalError
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.linalg import symmetric_eigen
from streamgp.loops.evidence import CLEARLY
from streamgp.training import FitResult

__all__ = ["CONSTRAINT_FLOOR", "FLOOR", "NOISE_MODE", "Fitter", "fit_with_or_without_noise"]

# The variances that stand for no noise, beside standardized outcomes: well above rounding. Of a constraint it is less:
# its boundary is where the best points often are, and is known no better than its standard deviation.
FLOOR, CONSTRAINT_FLOOR = 1e-6, 1e-8
# The mode of the noise's prior, LogNormal(-4, 1). What is learned below it is held up by the prior alone: where the sum
# of log likelihood and log prior is largest and the prior rises with the noise, the likelihood falls.
NOISE_MODE = math.exp(-5.0)
# The largest of the variances among which noise is looked for, each ten times the one before.
_MOST_NOISE = 0.1


# A fit to given rows, by the keywords `likelihood` and `before`, the earlier fit to start from or None.
Fitter = Callable[..., FitResult]


def fit_with_or_without_noise(
    fit: Fitter,
    inputs: Float[Tensor, "n d"],
    targets: Float[Tensor, " n"],
    *,
    likelihood: AbstractLikelihood | None,
    before: FitResult | None,
    is_repeatable: bool = False,
    floor: float = FLOOR,
) -> FitResult:
    """Fit with noise that is learned, and without noise where that may be better; the likelier of both.

    The prior of the noise keeps it away from zero, and so a model of outcomes without noise from what they tell of
    each other nearby. Mostly one fit is enough: without noise if there was none before and more is not likelier, with
    noise if it is found to be above its prior's mode. Without a fit to start from, a search may end where all that is
    steep is noise, so that both are tried.

    Args:
        fit: To the rows.
        inputs: Of the model, as many as inducing points at most.
        targets: In its units, standardized.
        likelihood: With noise that is learned.
        before: The last fit.
        is_repeatable: Whether outcomes are known to be the same when they are repeated: there is no noise then.
        floor: The variance that stands for no noise.
    """
    free = None
    if is_repeatable:
        free = _fit_without_noise(fit, before, floor)
        return fit(likelihood=likelihood, before=before) if free is None else free
    if before is not None and _noise(before) <= floor:
        free = _fit_without_noise(fit, before, floor)
        if free is not None and _is_likeliest_without_noise(free, inputs, targets, floor):
            return free
    noisy = fit(likelihood=likelihood, before=before)
    if _noise(noisy) < NOISE_MODE:
        free = _fit_without_noise(fit, noisy, floor) if free is None else free
        margin = 0.0
    elif before is None:
        # So much was not exceeded once on designs without structure and with noise of a tenth of the deviation or more.
        free, margin = _fit_without_noise(fit, None, floor), CLEARLY
    else:
        return noisy
    return noisy if free is None or free.info.bound < noisy.info.bound + margin else free


def _noise(result: FitResult) -> float:
    noise = result.likelihood.gaussian_noise_variance
    return math.inf if noise is None else float(noise.max())


def _fit_without_noise(fit: Fitter, before: FitResult | None, floor: float) -> FitResult | None:
    """None where it has no value: where points repeat with different outcomes."""
    try:
        result = fit(likelihood=Gaussian(floor, is_learned=False), before=before)
    except NumericalError:
        return None
    return replace(result, likelihood=Gaussian(floor))  # learned the next time, too


def _is_likeliest_without_noise(
    result: FitResult, inputs: Float[Tensor, "n d"], targets: Float[Tensor, " n"], floor: float
) -> bool:
    """Whether, with the same kernel, the likelihood of outcomes is largest at the least noise."""
    prior = result.gp.process.prior
    values, vectors = symmetric_eigen(prior.covariance(inputs, inputs), name="the covariance of outcomes")
    residual = (vectors.mT @ (targets - prior.mean(inputs))).square()
    num_steps = round(math.log10(_MOST_NOISE / floor))
    noise = floor * 10.0 ** torch.arange(num_steps + 1.0, dtype=values.dtype).unsqueeze(-1)
    variance = values.clamp_min(0.0) + noise
    return int((variance.log() + residual / variance).sum(-1).argmin()) == 0
