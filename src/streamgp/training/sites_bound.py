"""The bound of observations of any likelihood, as a function of hyperparameters at fixed Gaussian sites."""

import warnings
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import StreamGPWarning
from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites import AbstractBelief, DenseBelief, FactoredBelief, SiteRule, find_sites
from streamgp.training.features import Features, Observed, observed_features
from streamgp.training.parameters import Hyperparameters

__all__ = [
    "FINAL_SITE_TOLERANCE",
    "SITE_TOLERANCE",
    "FixedSites",
    "bound_at_sites",
    "optimal_sites",
    "sites_bound",
    "sites_of",
]

# The residual at which sites are good enough while hyperparameters still move, and at the end, in posterior standard
# deviations.
SITE_TOLERANCE, FINAL_SITE_TOLERANCE = 1e-3, 1e-5


class FixedSites(NamedTuple):
    r"""Gaussian factors $\exp(\lambda f - \frac12 \tau f^2)$, one for each observation and latent function.

    Attributes:
        pull: $\lambda$.
        precision: $\tau$, positive.
    """

    pull: Float[Tensor, "*c n"]
    precision: Float[Tensor, "*c n"]


def optimal_sites(
    setting: Hyperparameters, data: Observed, *, tolerance: float | None = None
) -> tuple[FixedSites, bool]:
    """Find the sites that maximize the bound for given hyperparameters, by natural-gradient steps.

    Returns:
        The sites, and whether the iteration converged.
    """
    with torch.no_grad():
        features = observed_features(setting, data)
    return sites_of(features, setting.likelihood, data.targets, tolerance=tolerance)


def sites_of(
    features: Features, likelihood: AbstractLikelihood, targets: Float[Tensor, " n"], *, tolerance: float | None
) -> tuple[FixedSites, bool]:
    """Find the same for given features."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamGPWarning)  # told by what is returned
        rule = SiteRule("variational", tolerance=tolerance, max_iterations=100)
        sites, info = find_sites(_belief(features), likelihood, targets, rule)
    precision = 1.0 / sites.variance
    return FixedSites(precision * sites.targets, precision), bool(info.is_converged.all())


def sites_bound(setting: Hyperparameters, data: Observed, sites: FixedSites) -> Float[Tensor, ""]:
    r"""Evaluate the bound as a function of kernel, mean, inducing points and likelihood.

    The belief is the prior times fixed sites, so that it moves with the prior:
    $q_\theta(u) \propto p_\theta(u) \prod_i \exp(\lambda_i f_i - \frac12 \tau_i f_i^2)$, $f = \mu + \phi^\top u$, and

    $$
    \mathcal L(\theta) = \sum_i \mathbb E_{q_\theta} \log p(y_i \mid f_i) - \operatorname{KL}(q_\theta \Vert p_\theta).
    $$

    Several latent functions of an observation have sites and divergences each. Where the sites are optimal its gradient
    is that of the bound with the sites optimized away. A carried belief takes the place of the prior $p_\theta(u)$, and
    what it integrates to is added.

    References:
        Adam, Chang, Khan, Solin (2021), Dual parameterization of sparse variational Gaussian processes.
    """
    return bound_at_sites(observed_features(setting, data), setting.likelihood, data.targets, sites)


def bound_at_sites(
    features: Features, likelihood: AbstractLikelihood, targets: Float[Tensor, " n"], sites: FixedSites
) -> Float[Tensor, ""]:
    """Evaluate the same for given features."""
    belief = _belief(features)
    pull = sites.pull - sites.precision * features.mean
    updated = belief.update(pull, sites.precision)
    shrinkage = (sites.precision * updated.variance).sum()
    divergence = 0.5 * (updated.quadratic.sum() - shrinkage + updated.log_determinant.sum())
    fit = likelihood.expected_log_density(features.mean + updated.shift, updated.variance + features.slack, targets)
    return fit.sum() - divergence + features.log_normalizer


def _belief(features: Features) -> AbstractBelief:
    phi = features.phi
    if phi.shape[-1] >= phi.shape[-2]:
        return FactoredBelief(features.mean, phi, features.slack)
    return DenseBelief(features.mean, phi.mT @ phi, features.slack)
