r"""Choice of the model of an outcome: of all candidates (units, kernel, noise), the one with the most evidence.

The evidence of a candidate is the bound on the log likelihood of its fit, in the user's units,

$$
\log p(y) \ge \mathcal L + \sum_i \log \left| \frac{d u(y_i)}{d y_i} \right| ,
$$

less a margin where it is the less usual one: that is taken if outcomes are clearly likelier with it. Kernels go on to
be judged by their record: each outcome was predicted by each of them before it was told, and

$$
\log p(y_{1:n}) = \mathcal L(y_{1:m}) + \sum_{i > m} \log p(y_i \mid y_{1:i-1})
$$

holds forecasts that no hyperparameter was fitted to. Of hyperparameters that are fitted to a dozen outcomes the bound
says that a smooth kernel is likelier by half a nat, where each of its next forecasts is worse by as much.

References:
    Dawid (1984), Present position and potential developments: the prequential approach.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import NumericalError
from streamgp.evidence import Evidence
from streamgp.gp.interactions import InteractionKernel
from streamgp.gp.named_kernels import NAMED_KERNELS
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.linalg import symmetric_eigen
from streamgp.loops.learned_rows import LearnedRows
from streamgp.loops.units import OutcomeUnits
from streamgp.storage import register
from streamgp.training import FitResult

__all__ = [
    "CONSTRAINT_FLOOR",
    "FLOOR",
    "MOST_COMPARED",
    "NOISE_MODE",
    "Candidates",
    "Comparison",
    "Selected",
    "is_comparison_due",
    "log_forecasts",
    "select_model",
]

# By how much the evidence of a less usual model must be larger: 20 to 1. With a larger margin it is recognized later.
CLEARLY = 3.0
# The variances that stand for no noise, beside standardized outcomes: well above rounding. Of a constraint it is less:
# its boundary is where the best points often are, and is known no better than its standard deviation.
FLOOR, CONSTRAINT_FLOOR = 1e-6, 1e-8
# The mode of the noise's prior, LogNormal(-4, 1). What is learned below it is held up by the prior alone: where the sum
# of log likelihood and log prior is largest and the prior rises with the noise, the likelihood falls.
NOISE_MODE = math.exp(-5.0)
# The largest of the variances among which noise is looked for, each ten times the one before.
_MOST_NOISE = 0.1
# Kernels are compared with each tenth more evaluations, which is with each new one at first; beyond so many, only where
# hyperparameters are searched from the start.
_GROWTH, MOST_COMPARED = 0.1, 200
# Dimensions up to which kernels are compared: beyond, it was not measured, and a fit takes long.
_MOST_DIMS = 20
# The share of forecasts that are taken to be worth nothing, so that no single one decides for good.
_BLUNDERS = 0.05


# A fit to targets, by the keywords `likelihood`, `before` (the earlier fit to start from, or None) and `kernel` (for a
# fit without one).
Fitter = Callable[..., FitResult]


@register
@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """Fits with several kernels, and how well each has forecast.

    Attributes:
        fits: One for each kernel, in the order of `kernel_names`.
        scores: Evidence of the first fit and log density of all forecasts since.
        units: Of the fits.
        num_points: Number of evaluations that the fits have seen.
    """

    fits: tuple[FitResult, ...]
    scores: tuple[float, ...]
    units: OutcomeUnits
    num_points: int = 0


@final
@dataclass(frozen=True, eq=False)
class Candidates:
    """An outcome, and the models that it may have.

    Attributes:
        rows: Inputs of the model, and outcomes in the user's units.
        units: In which they may be modeled; the first are the usual ones.
        fit: To targets.
        likelihood: The likelihood in some units, with what an earlier fit learned.
        before: The last fit; None to search from the start.
        comparison: The last comparison of kernels, its scores as of now; None where there is none.
        kernel: The only kernel; None for that of `streamgp.fit`, or for the choice of several.
        has_kernels: Whether the kernel is chosen among several.
        is_compared: Whether all of them are fitted now; if not, the kernel stays as it is, RBF at first.
        may_be_noisy: Whether there is noise, or may be: the less usual kernel has to be clearly likelier then.
        may_lack_noise: Whether the noise is learned, and may be none.
        is_repeatable: Whether outcomes are known to be the same when they are repeated: there is no noise then.
        floor: The variance that stands for no noise.
    """

    rows: LearnedRows
    units: Sequence[OutcomeUnits]
    fit: Fitter
    likelihood: Callable[[OutcomeUnits, FitResult | None], AbstractLikelihood | None]
    before: FitResult | None = None
    comparison: Comparison | None = None
    kernel: Kernel | None = None
    has_kernels: bool = True
    is_compared: bool = True
    may_be_noisy: bool = False
    may_lack_noise: bool = False
    is_repeatable: bool = False
    floor: float = FLOOR


@final
@dataclass(frozen=True, eq=False)
class Selected:
    """The model with the most evidence.

    Attributes:
        units: In which the outcome is modeled.
        result: The fit.
        comparison: The latest comparison of kernels; None where they were not compared.
    """

    units: OutcomeUnits
    result: FitResult
    comparison: Comparison | None


def select_model(candidates: Candidates) -> Selected:
    """Fit the candidates, and take the one with the most evidence.

    How outcomes are spread does not tell in which units they are smooth: those of a search lie close to their bounds.
    What they are as a function of the inputs does, and so all are fitted.
    """
    fits = [(units, *_fit_kernels(candidates, units)) for units in candidates.units]
    if len(fits) == 1:
        return Selected(*fits[0])
    evidence = [
        result.info.bound + candidates.rows.log_change(units) - (CLEARLY if number else 0.0)
        for number, (units, result, _) in enumerate(fits)
    ]
    return Selected(*fits[max(range(len(fits)), key=evidence.__getitem__)])


def is_comparison_due(num_before: int, num_now: int) -> bool:
    """Decide whether kernels are to be compared again.

    Args:
        num_before: Number of evaluations at the last fit.
        num_now: Number of evaluations.
    """
    before, now = (math.floor(math.log(max(n, 1)) / math.log1p(_GROWTH)) for n in (num_before, num_now))
    return num_now <= MOST_COMPARED and now > before


def log_forecasts(result: FitResult, likelihood: AbstractLikelihood, inputs: Tensor, targets: Tensor) -> float:
    """Sum the log densities of outcomes under a fit that has not seen them.

    Args:
        result: The fit.
        likelihood: Of the outcomes.
        inputs: Of the model.
        targets: In its units.
    """
    process = result.gp.process
    with torch.no_grad():
        mean, variance = process.mean(inputs), process.variance(inputs).clamp_min(0.0)
        known = likelihood.log_predictive_density(mean, variance, targets)
        vague = likelihood.log_predictive_density(mean, variance + process.prior.variance(inputs), targets)
        return float(torch.logaddexp(known + math.log1p(-_BLUNDERS), vague + math.log(_BLUNDERS)).sum())


def _fit_kernels(candidates: Candidates, units: OutcomeUnits) -> tuple[FitResult, Comparison | None]:
    r"""Fit the kernels of a standardized outcome, and take the one under which outcomes are likelier.

    The first is RBF: smooth, of all inputs together. The second may in part, or altogether, be a sum of functions of
    single inputs and of pairs, with ripples. Where outcomes are such sums a few dozen of them tell where the best value
    of each input is, even if it was never tried together with the best of the others; where they are not, the second
    is likelier by chance at most. The third is Matérn's, which is less sure between points. All have unit variance:
    with few, noisy outcomes, a scale to be learned is often taken for noise.
    """
    before, comparison, inputs = candidates.before, candidates.comparison, candidates.rows.points
    if not candidates.has_kernels:
        return _fit_noise(candidates, units, before, candidates.kernel), None
    if before is not None and (comparison is None or not candidates.is_compared):
        return _fit_noise(candidates, units, before), comparison
    if before is not None and comparison is not None:
        fits = tuple(_fit_noise(candidates, units, each) for each in comparison.fits)
    else:
        names = kernel_names(inputs.shape[-1]) if candidates.is_compared else ("rbf",)
        fits = tuple(_fit_noise(candidates, units, None, _unit_kernel(name, inputs)) for name in names)
    if len(fits) == 1:
        return fits[0], None
    scores = tuple(each.info.bound for each in fits) if comparison is None else comparison.scores
    margin = CLEARLY if candidates.may_be_noisy else 0.0
    values = [score - margin * _may_be_sum(each) for each, score in zip(fits, scores, strict=True)]
    return fits[max(range(len(fits)), key=values.__getitem__)], Comparison(fits, scores, units)


def kernel_names(num_dims: int) -> tuple[str, ...]:
    """Kernels that are compared."""
    if num_dims > _MOST_DIMS:
        return ("rbf",)
    return ("rbf", "interactions", "matern") if num_dims > 1 else ("rbf", "matern")


def _may_be_sum(result: FitResult) -> bool:
    return isinstance(result.gp.process.prior.kernel, InteractionKernel)


def _unit_kernel(name: str, inputs: Float[Tensor, "*n d"]) -> Kernel:
    """Make a kernel of unit variance; two points of the unit cube are about 1.4 lengthscales apart in it."""
    ends = torch.zeros(inputs.shape[-1]).to(inputs)
    return NAMED_KERNELS[name](ends, ends + 1.0)


def _fit_noise(
    candidates: Candidates, units: OutcomeUnits, before: FitResult | None, kernel: Kernel | None = None
) -> FitResult:
    """Fit with noise that is learned, and without noise where that may be better; take the likelier of both.

    The prior of the noise keeps it away from zero, and so a model of outcomes without noise from what they tell of
    each other nearby. Mostly one fit is enough: without noise if there was none before and more is not likelier, with
    noise if it is found to be above its prior's mode. Without a fit to start from, a search may end where all that is
    steep is noise, so that both are tried.
    """
    targets = candidates.rows.targets(units)

    def fit(start: FitResult | None) -> FitResult:
        return candidates.fit(targets, likelihood=candidates.likelihood(units, before), before=start, kernel=kernel)

    def fit_free(start: FitResult | None) -> FitResult | None:
        """Fit without noise; None where that has no value, as points repeat with different outcomes."""
        likelihood = Gaussian(candidates.floor, is_learned=False)
        try:
            result = candidates.fit(targets, likelihood=likelihood, before=start, kernel=kernel)
        except NumericalError:
            return None
        return replace(result, likelihood=Gaussian(candidates.floor))  # learned the next time, too

    if not candidates.may_lack_noise:
        return fit(before)
    free = None
    if candidates.is_repeatable:
        free = fit_free(before)
        return fit(before) if free is None else free
    if before is not None and _noise(before) <= candidates.floor:
        free = fit_free(before)
        if free is not None and is_likeliest_without_noise(free, candidates.rows.inputs, targets, candidates.floor):
            return free
    noisy = fit(before)
    if _noise(noisy) < NOISE_MODE:
        free = fit_free(noisy) if free is None else free
        margin = 0.0
    elif before is None:
        # So much was not exceeded once on designs without structure and with noise of a tenth of the deviation or more.
        free, margin = fit_free(None), CLEARLY
    else:
        return noisy
    return noisy if free is None or free.info.bound < noisy.info.bound + margin else free


def _noise(result: FitResult) -> float:
    noise = result.likelihood.gaussian_noise_variance
    return math.inf if noise is None else float(noise.max())


def is_likeliest_without_noise(
    result: FitResult, inputs: Tensor | Evidence, targets: Float[Tensor, " n"], floor: float
) -> bool:
    """Decide whether, with the same kernel, the likelihood of outcomes is largest at the least noise.

    Args:
        result: A fit.
        inputs: Of the model, or rows of evidence.
        targets: In its units.
        floor: The least noise.
    """
    prior = result.gp.process.prior
    values, vectors = symmetric_eigen(prior.covariance(inputs, inputs), name="the covariance of outcomes")
    residual = (vectors.mT @ (targets - prior.mean(inputs))).square()
    num_steps = round(math.log10(_MOST_NOISE / floor))
    noise = floor * 10.0 ** torch.arange(num_steps + 1.0, dtype=values.dtype).unsqueeze(-1)
    variance = values.clamp_min(0.0) + noise
    return int((variance.log() + residual / variance).sum(-1).argmin()) == 0
