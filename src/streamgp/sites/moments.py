"""Expectation propagation: sites that give each observation's latent value the moments it has with the observation."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.likelihoods.quadrature import gauss_hermite, nodes_first
from streamgp.sites.belief import AbstractBelief, Updated

__all__ = ["improve_moments", "predictive_derivatives"]

# The least precision of what other sites say of a value, relative to that of the belief before them: rounding of a
# difference may leave less than nothing. If larger, sites that are far more precise than the belief are cut.
_LEAST_CAVITY = 1e-8
# Nodes of moments without a closed form; half of them miss a count of four by 0.2 % of its variance.
_NUM_NODES = 64


class MomentStep(NamedTuple):
    """State to which matching moments leads.

    Attributes:
        state: Pull and precision.
        residual: How far the moments at the state are from those, in standard deviations.
        step_limit: One; kept for the iteration.
        num_negative: Sites that would widen the belief.
    """

    state: Float[Tensor, "2 *s k"]
    residual: Float[Tensor, "*s"]
    step_limit: Float[Tensor, "*s"]
    num_negative: Int[Tensor, "*s"]


def improve_moments(
    belief: AbstractBelief,
    likelihood: AbstractLikelihood,
    y: Float[Tensor, "*t k"],
    x: Float[Tensor, "2 *s k"],
    updated: Updated,
    least: Float[Tensor, "*b k"],
) -> MomentStep:
    r"""Match the moments of each latent value with its observation, given the sites of all others.

    Without its own site a value is $\mathcal N(m + e_c, V_c)$, the cavity. With $g$ and $h$ the derivatives of
    $\log \int p(y \mid f) \, \mathcal N(f \mid m + e_c, V_c + s) \, df$ in the mean, $s$ the slack, the site that gives
    the moments of the value given $y$ has

    $$
    \tau = \frac{-h}{1 + V_c h}, \qquad r = \tau e_c + (1 + V_c \tau) g .
    $$

    A site that would widen the belief has the least precision instead, and the same mean.

    Args:
        belief: Before all sites.
        likelihood: Of an observation.
        y: Observations.
        x: Pull and precision of the sites.
        updated: The belief with them.
        least: The least precision of a site.

    References:
        Minka (2001), Expectation propagation for approximate Bayesian inference.
    """
    pull, precision = x.unbind(0)
    tiny = torch.finfo(y.dtype).tiny
    before, variance = belief.variance(), updated.variance.clamp_min(tiny)
    cavity = (1.0 / variance - precision).clamp_min(_LEAST_CAVITY / before.clamp_min(tiny))
    V, shift = 1.0 / cavity, (updated.shift / variance - pull) / cavity
    spread = V if belief.slack is None else V + belief.slack
    first, second = predictive_derivatives(likelihood, belief.mean + shift, spread, y)
    left = (1.0 + V * second).clamp_min(torch.finfo(y.dtype).eps)
    is_clipped = -second / left < least
    new_precision = torch.where(is_clipped, least, -second / left)
    # The pull that moves the mean as the observation does, whatever the precision; first / left if not clipped.
    new_pull = new_precision * shift + (1.0 + V * new_precision) * first
    # Moments that the value would have, beside those it has.
    target_variance = V * left
    moved = (shift + V * first - updated.shift).abs() / variance.sqrt()
    changed = (target_variance - variance).abs() / variance
    residual = torch.maximum(moved, torch.where(is_clipped, (new_precision - precision).abs() * variance, changed))
    largest = residual.detach().nan_to_num(nan=torch.inf).amax(-1)
    return MomentStep(torch.stack([new_pull, new_precision]), largest, torch.ones_like(largest), (second > 0).sum(-1))


def predictive_derivatives(
    likelihood: AbstractLikelihood,
    mean: Float[Tensor, "*s k"],
    variance: Float[Tensor, "*s k"],
    y: Float[Tensor, "*t k"],
) -> tuple[Float[Tensor, "*u k"], Float[Tensor, "*u k"]]:
    """Both derivatives of the log predictive density in the mean: in closed form, or by quadrature."""
    found = likelihood.log_predictive_derivatives(mean, variance, y)
    if found is not None:
        return found
    nodes, weights = gauss_hermite(max(likelihood.num_nodes, _NUM_NODES), mean.dtype, mean.device)
    z = nodes_first(nodes, max(mean.dim(), y.dim(), variance.dim()))
    deviation = variance.sqrt()
    log_mass = likelihood.log_density(mean + deviation * z, y) + nodes_first(weights.log(), z.dim() - 1)
    share = log_mass.softmax(0)
    center = (share * z).sum(0)
    spread = (share * (z - center).square()).sum(0)
    return center / deviation, (spread - 1.0) / variance
