"""Priors, bounds and natural scales of hyperparameters."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean
from gpytorch.module import Module
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_choice
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.features import Observed
from streamgp.training.parameters import Hyperparameters, Space, hyperparameter_space

__all__ = [
    "PRIORS",
    "HyperPrior",
    "Layout",
    "hyper_prior",
    "latent_variance",
    "likelihood_bounds",
    "read_priors",
    "target_unit",
    "target_variance",
]

PRIORS = ("dim_scaled", "tabular", "paper", "half_cauchy")

# BoTorch's noise prior, and the bound below which its mode for the shrinkage could fall without end: with more
# irrelevant dimensions than relevant ones the density of the half-Cauchy prior has a pole at zero.
_LEAST_SHRINKAGE = 0.01
SHRINKAGE = "log_shrinkage"
# Of a latent mean on the logit, probit or log scale: weak, but if all outcomes are alike it must not run away.
_MEAN_DEVIATION = 5.0
# The least noise variance that is learned, relative to the variance of the targets.
_LEAST_NOISE = 1e-6
# Targets are constant if they deviate by no more than so many roundings of their own size, whatever their units.
_ROUNDING = 100.0

# Of 400 rows of boston, diabetes, skillcraft, wage, autompg, imports-85 and a function of 4 of 32 columns, log
# densities of others were best or near it with these; wider lengthscales gain on the last and lose as much on
# imports-85, with 155 rows of 75 columns. "dim_scaled" takes the noise of skillcraft and diabetes for none where there
# is a linear part.
_TABULAR_LENGTHSCALE, _TABULAR_NOISE = (2.1, 1.2), (2.0, 2.0)
# With more columns than these, lengthscales are expected to grow as their number: most columns then tell nothing. Log
# densities of hidden (32 columns), schools (29), skillcraft (19) and bodies (24) changed by +.022, +.028, +.005, -.011.
_FEW_COLUMNS = 10

Density = Callable[[Tensor], Tensor]


@final
@dataclass(frozen=True, eq=False)
class HyperPrior:
    """The log density of all hyperparameters that have a prior.

    Attributes:
        own: Priors that the user's kernel and mean carry: module, prior, and how to read the value.
        terms: Others: module, name of the value, and its log density.
        noise: Log density of a learned Gaussian noise variance.
        shrinks: Kernels whose inverse lengthscales have a half-Cauchy prior of learned scale.
        start: Extra coordinates that the prior brings in, where the search begins.
        is_likelihood_weighed: Whether the likelihood's own weak prior of its parameters counts.
    """

    own: tuple[tuple[Any, Any, Any], ...] = ()
    terms: tuple[tuple[Any, str, Density], ...] = ()
    noise: Density | None = None
    shrinks: tuple[Any, ...] = ()
    start: Mapping[str, Tensor] = field(default_factory=dict)
    is_likelihood_weighed: bool = False

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Bounds of the extra coordinates that the prior brings in."""
        return {SHRINKAGE: (math.log(_LEAST_SHRINKAGE), math.log(1e3))} if self.shrinks else {}

    def log_density(self, setting: Hyperparameters) -> Float[Tensor, ""]:
        """Sum all terms, of the values themselves and not of their logarithms or raw parameters."""
        total = setting.inducing_points.new_zeros(())
        for module, prior, read in self.own:
            total = total + prior.log_prob(read(module)).sum()
        for module, name, density in self.terms:
            total = total + density(getattr(module, name)).sum()
        noise = setting.likelihood.gaussian_noise_variance
        if self.noise is not None and noise is not None:
            total = total + self.noise(noise)
        if self.is_likelihood_weighed:
            total = total + setting.likelihood.log_prior().to(total)
        if self.shrinks:
            log_scale = setting.extra[SHRINKAGE]
            # The scale itself is half-Cauchy.
            total = total + _half_cauchy(log_scale.exp(), torch.zeros_like(log_scale))
            for module in self.shrinks:
                total = total + _half_cauchy(1.0 / module.lengthscale, log_scale).sum()
        return total


def read_priors(
    priors: str | None, kernel: Kernel, mean: Any, *, likelihood: AbstractLikelihood, target_variance: float | Tensor
) -> HyperPrior:
    r"""Put a named set of priors on all hyperparameters that have none of their own.

    - `"dim_scaled"`, BoTorch's of today: lengthscales $\operatorname{LogNormal}(\sqrt 2 + \frac12 \log d, \sqrt 3)$,
      noise variance $\operatorname{LogNormal}(-4, 1)$ times the variance of the targets. BoTorch has no outputscale;
      ours has $\operatorname{LogNormal}(1, 1)$ times that variance, whose mode is the variance itself. A constant mean
      of classes or counts is $\mathcal{N}(0, 5^2)$, so that it stays finite where all of them are alike.
    - `"tabular"`, for tables with columns of zero mean and unit variance: lengthscales
      $\operatorname{LogNormal}(2.1 + \frac12 \log d + \log \max(d / 10, 1), 1.2)$, noise variance
      $\operatorname{LogNormal}(2, 2)$ times that of the targets; the rest as `"dim_scaled"`. Their logarithms have
      their modes at twice the distance between two rows, farther for many columns, and at an eighth of the variance, so
      that noise is not taken for none, and columns that tell nothing are faded out.
    - `"paper"`: lengthscales $\operatorname{Gamma}(3, 6)$, outputscales $\operatorname{Gamma}(2, 0.15)$, noise variance
      $\operatorname{Gamma}(1.1, 0.05)$, for targets of unit variance.
    - `"half_cauchy"`, of the paper's hopper experiment: inverse lengthscales $\operatorname{HalfCauchy}(\tau)$ with
      $\tau \sim \operatorname{HalfCauchy}(1)$ found together with them, $\tau \ge 0.01$; the rest as `"paper"`.

    Args:
        priors: Name of a set, or None for none.
        kernel: Whose own registered priors count in any case.
        mean: Likewise.
        likelihood: Of the observations.
        target_variance: Of the targets; 1 for those that are not Gaussian. Where these look at several latent
            functions, of each.

    References:
        Hvarfner, Hellsten, Nardi (2024), Vanilla Bayesian optimization performs great in high dimensions.
        Eriksson, Jankowiak (2021), High-dimensional Bayesian optimization with sparse axis-aligned subspaces.
    """
    own = [(module, prior, read) for part in (kernel, mean) for _, module, prior, read, _ in part.named_priors()]
    if priors is None:
        return HyperPrior(tuple(own))
    check_choice(priors, PRIORS, "priors")
    log_variance = target_variance.log() if isinstance(target_variance, Tensor) else math.log(target_variance)
    outputscale: Density = _gamma(2.0, 0.15)
    noise: Density = _gamma(1.1, 0.05)
    if priors in ("dim_scaled", "tabular"):
        outputscale = _log_normal(1.0 + log_variance, 1.0)
        location, scale = (-4.0, 1.0) if priors == "dim_scaled" else _TABULAR_NOISE
        noise = _log_normal(location + log_variance, scale)
    terms = [(module, "outputscale", outputscale) for module in _without_prior(kernel, "outputscale")]
    if priors in ("dim_scaled", "tabular") and (likelihood.link != "identity" or likelihood.outcome_kind == "class"):
        terms += [(module, "constant", _normal(_MEAN_DEVIATION)) for module in _learned_constants(mean)]
    scaled = _without_prior(kernel, "lengthscale")
    if priors != "half_cauchy":
        terms += [(module, "lengthscale", _lengthscale_density(priors, module)) for module in scaled]
    is_noisy = likelihood.is_gaussian and bool(likelihood.learnable())
    shrinks = tuple(scaled) if priors == "half_cauchy" else ()
    start = {SHRINKAGE: torch.zeros((), dtype=torch.float64)} if shrinks else {}
    return HyperPrior(tuple(own), tuple(terms), noise if is_noisy else None, shrinks, start, True)


def _lengthscale_density(priors: str, module: Any) -> Density:
    if priors == "paper":
        return _gamma(3.0, 6.0)
    d = module.ard_num_dims or 1
    if priors == "dim_scaled":
        return _log_normal(math.sqrt(2.0) + 0.5 * math.log(d), math.sqrt(3.0))
    location, scale = _TABULAR_LENGTHSCALE
    return _log_normal(location + 0.5 * math.log(d) + math.log(max(d / _FEW_COLUMNS, 1.0)), scale)


def _learned_constants(mean: Any) -> list[Module]:
    """The mean, if it is a constant that is learned and has no prior yet."""
    return _without_prior(mean, "constant", prior="mean_prior") if isinstance(mean, ConstantMean) else []


def _without_prior(part: Module, name: str, *, prior: str | None = None) -> list[Module]:
    """Modules with a learned hyperparameter of this name that has no prior yet; GPyTorch may call that otherwise."""
    return [
        module
        for module in part.modules()
        if f"raw_{name}" in module._parameters
        and module._parameters[f"raw_{name}"].requires_grad
        and (prior or f"{name}_prior") not in getattr(module, "_priors", {})
    ]


def _half_cauchy(value: Tensor, log_scale: Tensor) -> Tensor:
    r"""The log density $\log \frac{2}{\pi \tau} - \log(1 + (x / \tau)^2)$."""
    return math.log(2.0 / math.pi) - log_scale - torch.log1p((value * (-log_scale).exp()).square())


def _normal(scale: float) -> Density:
    r"""The log density $-x^2 / (2 s^2) - \log s - \frac12 \log 2 \pi$."""

    def density(x: Tensor) -> Tensor:
        return -0.5 * (x / scale).square() - math.log(scale * math.sqrt(2.0 * math.pi))

    return density


def _log_normal(location: float | Tensor, scale: float) -> Density:
    r"""The log density $-\log x - \log s - \frac12 \log 2 \pi - (\log x - m)^2 / (2 s^2)$."""

    def density(x: Tensor) -> Tensor:
        log_x = x.log()
        return -log_x - 0.5 * ((log_x - location) / scale).square() - math.log(scale * math.sqrt(2.0 * math.pi))

    return density


def _gamma(shape: float, rate: float) -> Density:
    r"""The log density $a \log b - \log \Gamma(a) + (a - 1) \log x - b x$."""
    constant = shape * math.log(rate) - math.lgamma(shape)

    def density(x: Tensor) -> Tensor:
        return constant + (shape - 1.0) * x.log() - rate * x

    return density


def hyper_prior(setting: Hyperparameters, data: Observed, priors: str | None) -> HyperPrior:
    """Put a named set of priors on the hyperparameters of a setting, on the scale of the targets."""
    return read_priors(
        priors,
        setting.kernel,
        setting.mean,
        likelihood=setting.likelihood,
        target_variance=latent_variance(data, setting.likelihood),
    )


def latent_variance(data: Observed, likelihood: AbstractLikelihood | None) -> float | Float[Tensor, " c"]:
    """The variance that latent functions are expected to have, of each where there are several."""
    if likelihood is not None and likelihood.num_latents > 1:
        return likelihood.starting_latents(data.targets)[1]
    return target_variance(data, is_gaussian=likelihood is None or likelihood.is_gaussian)


def target_variance(data: Observed, *, is_gaussian: bool) -> float:
    """The variance of the targets; 1 for constant ones and for those that are not Gaussian.

    Where new targets vary less than the values of a carried belief, as in a sorted stream, that of the belief counts.
    """
    if not is_gaussian:
        return 1.0
    variance = float(data.levels.var(correction=0)) if data.whole_variance is None else data.whole_variance
    if data.carried is not None:
        variance = max(variance, data.carried.value_variance)
    rounding = _ROUNDING * torch.finfo(data.targets.dtype).eps
    return variance if variance > rounding**2 * float(data.targets.square().mean()) else 1.0


def target_unit(setting: Hyperparameters, data: Observed) -> float:
    """The standard deviation of the targets; 1 for constant ones and for those that are not Gaussian."""
    return math.sqrt(target_variance(data, is_gaussian=setting.likelihood.is_gaussian))


def likelihood_bounds(setting: Hyperparameters, data: Observed) -> dict[str, tuple[float, float]]:
    """Bounds of the logarithm of a learned noise variance."""
    likelihood = setting.likelihood
    noise = likelihood.gaussian_noise_variance
    if noise is None or not likelihood.learnable():
        return {}
    start = float(noise)
    least = min(_LEAST_NOISE * target_variance(data, is_gaussian=True), start)
    return {"noise_variance": (math.log(least), float("inf"))}


@final
@dataclass(frozen=True, eq=False)
class Layout:
    """Space of what is learned, in a form that can be pickled: the space itself holds functions.

    Attributes:
        base: Where it starts, and what does not change.
        learn_inducing: Whether inducing points are learned.
        extra: Bounds of extra tensors.
        likelihood_bounds: Bounds of the likelihood's values.
        target_unit: The spread of the targets.
    """

    base: Hyperparameters
    learn_inducing: bool
    extra: Mapping[str, tuple[float, float]]
    likelihood_bounds: Mapping[str, tuple[float, float]]
    target_unit: float = 1.0

    @classmethod
    def of(
        cls,
        setting: Hyperparameters,
        data: Observed,
        priors: str | None,
        *,
        learn_inducing: bool = False,
        extra: Mapping[str, tuple[float, float]] | None = None,
    ) -> tuple["Layout", HyperPrior]:
        """Lay out what is learned of a setting, with its prior."""
        prior = hyper_prior(setting, data, priors)
        base = replace(setting, extra={**prior.start, **setting.extra})
        bounds, unit = likelihood_bounds(setting, data), target_unit(setting, data)
        return cls(base, learn_inducing, {**prior.bounds, **(extra or {})}, bounds, unit), prior

    def space(self) -> Space:
        """Make the space."""
        return hyperparameter_space(
            self.base,
            learn_inducing=self.learn_inducing,
            extra=self.extra,
            likelihood_bounds=self.likelihood_bounds,
            target_unit=self.target_unit,
        )
