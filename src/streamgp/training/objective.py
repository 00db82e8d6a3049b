"""What training maximizes: the bound of all observations, and the priors of hyperparameters."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.collapsed import collapsed_bound
from streamgp.training.features import Observed, observed_features
from streamgp.training.options import Options
from streamgp.training.parameters import Hyperparameters
from streamgp.training.priors import HyperPrior, read_priors
from streamgp.training.sites_bound import FixedSites, optimal_sites, sites_bound

__all__ = [
    "FINAL_SITE_TOLERANCE",
    "SITE_TOLERANCE",
    "bound_of",
    "hyper_prior",
    "latent_variance",
    "likelihood_bounds",
    "target_unit",
    "target_variance",
    "trace_slack",
]

# The residual at which sites are good enough while hyperparameters still move, and at the end, in posterior standard
# deviations.
SITE_TOLERANCE, FINAL_SITE_TOLERANCE = 1e-3, 1e-5
# The least noise variance that is learned, relative to the variance of the targets.
_LEAST_NOISE = 1e-6
# Targets are constant if they deviate by no more than so many roundings of their own size, whatever their units.
_ROUNDING = 100.0


def bound_of(setting: Hyperparameters, data: Observed, sites: FixedSites | None, *, beta: float) -> Tensor:
    """The bound: collapsed where observations are Gaussian, at fixed sites otherwise."""
    noise = setting.likelihood.gaussian_noise_variance
    if noise is not None:
        return collapsed_bound(setting, data, noise, beta=beta)
    assert sites is not None
    return sites_bound(setting, data, sites)


def trace_slack(setting: Hyperparameters, data: Observed, sites: FixedSites | None = None) -> float:
    """What the inducing points leave unexplained of an observation, in units of its noise, and of a carried belief."""
    with torch.no_grad():
        features = observed_features(setting, data)
        slack, lost = features.slack, 0.0 if features.carried is None else float(features.carried.lost_trace)
        noise = setting.likelihood.gaussian_noise_variance
        if noise is not None:
            return float((slack / noise.to(slack)).mean()) + lost / data.num_data
        if sites is None:
            sites, _ = optimal_sites(setting, data, tolerance=SITE_TOLERANCE)
        return float((slack * sites.precision).mean()) + lost / data.num_data


def hyper_prior(setting: Hyperparameters, data: Observed, options: Options) -> HyperPrior:
    """The priors of a setting's hyperparameters."""
    return read_priors(
        options.priors,
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
    variance = float(data.targets.var(correction=0)) if data.whole_variance is None else data.whole_variance
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
