"""Gaussian sites: observations of any likelihood as Gaussian ones."""

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.shapes import broadcast_shapes
from streamgp.sites.belief import AbstractBelief
from streamgp.sites.implicit import attach_fixed_point_gradient
from streamgp.sites.iteration import improve, iterate
from streamgp.sites.single import find_single_site
from streamgp.sites.site_rule import DAMPING, SiteRule
from streamgp.storage import register

__all__ = ["SiteInfo", "Sites", "find_sites"]

# Up to so many single observations are solved one after the other, in numbers; more are faster as tensors.
_FEW = 8


@register
class Sites(NamedTuple):
    """Gaussian observations that stand for others.

    Attributes:
        targets: $z$.
        variance: $v$, positive.
    """

    targets: Float[Tensor, "*s k"]
    variance: Float[Tensor, "*s k"]


@register
@final
@dataclass(frozen=True, eq=False)
class SiteInfo:
    """The sites that were found, and diagnostics of the iteration.

    Attributes:
        sites: The sites, without gradient.
        num_iterations: Steps taken, by the slowest member of the batch.
        is_converged: Whether the convergence test was met, for each member of the batch.
        residual: The largest residual, for each member of the batch.
        num_negative: Sites whose curvature was negative at the end and whose precision was therefore bounded at zero.
    """

    sites: Sites
    num_iterations: int
    is_converged: Bool[Tensor, "*s"]
    residual: Float[Tensor, "*s"]
    num_negative: int


def find_sites(
    belief: AbstractBelief, likelihood: AbstractLikelihood, y: Float[Tensor, "*s k"], rule: SiteRule
) -> tuple[Sites, SiteInfo]:
    r"""Find the Gaussian sites of observations.

    A site $\exp(r e - \frac12 \tau e^2)$ in the shift $e = f - m$ has precision $\tau$ and pull $r$. With gradient
    $g$ and curvature $h$ of the log density, as expectations under the belief that the sites lead to
    (`"variational"`) or at its mode (`"laplace"`), the sites are a fixed point of

    $$
    \tau \leftarrow \max(-h, 0), \qquad r \leftarrow g + \tau e .
    $$

    Steps are halved while they lower the objective, the variational bound or the log posterior density. The iteration
    has converged when $\lvert g - C^{-1} e \rvert \sqrt{v}$ and $\lvert \max(-h, 0) - \tau \rvert v$ are below the
    tolerance for every observation, $v$ being the variance after the observations. For `"moments"` see
    `improve_moments`.

    Gradients are implicit: they are those of the fixed point, whatever path led there.

    Args:
        belief: What is believed about the latent values before these observations.
        likelihood: Of one observation given its latent value.
        y: Observations, with more leading axes than the belief for fantasies.
        rule: Which sites; for `"paper"` the belief must be the prior.

    Returns:
        The sites, and diagnostics.

    Raises:
        ConvergenceError: If the iteration ends more than a standard deviation from its fixed point. Closer than that,
            but not converged, gives a warning.

    References:
        Khan, Lin (2017), Conjugate-computation variational inference.
        Rasmussen, Williams (2006), Gaussian processes for machine learning, algorithm 3.1.
    """
    is_tracked = torch.is_grad_enabled() and _requires_grad(belief, likelihood, y)
    shape = broadcast_shapes(y.shape, belief.mean.shape)
    is_few = shape[-1] == 1 and shape.numel() <= _FEW and y.device.type == "cpu" and rule.rule != "moments"
    if is_few and not is_tracked and not likelihood.has_row_constants and likelihood.num_latents == 1:
        return _find_singles(belief, likelihood, y, rule)
    found = iterate(belief, likelihood, y, rule)
    state, within = found.state, found.belief
    if is_tracked:
        # Shorter steps have the same fixed point, and contract where matching moments at once would overshoot.
        share = DAMPING if rule.rule == "moments" else 1.0
        state = attach_fixed_point_gradient(
            lambda x: x + share * (improve(within, likelihood, found.y, rule, x).state - x), state
        )
    pull, precision = state.unbind(0)
    targets = within.mean + (within.update(pull, precision).shift if rule.rule == "paper" else pull / precision)
    sites = Sites(targets.to(y.dtype), (1.0 / precision).to(y.dtype))
    return sites, SiteInfo(
        Sites(sites.targets.detach(), sites.variance.detach()),
        found.num_iterations,
        found.is_converged,
        found.residual.to(y.dtype),
        found.num_negative,
    )


def _find_singles(
    belief: AbstractBelief, likelihood: AbstractLikelihood, y: Tensor, rule: SiteRule
) -> tuple[Sites, SiteInfo]:
    """Find sites of a few single observations, each of whose fixed points is one of two numbers."""
    shape = broadcast_shapes(y.shape, belief.mean.shape)
    mean, variance, outcomes = (_numbers(each, shape) for each in (belief.mean, belief.variance(), y))
    slacks = [0.0] * len(mean) if belief.slack is None else _numbers(belief.slack, shape)
    found = [
        find_single_site(likelihood, one, rule, mean=mean[i], variance=variance[i], slack=slacks[i], dtype=y.dtype)
        for i, one in enumerate(outcomes)
    ]
    is_paper = rule.rule == "paper"
    values = [
        [mean[i] + (each.shift if is_paper else each.pull / each.precision) for i, each in enumerate(found)],
        [1.0 / each.precision for each in found],
        [each.residual for each in found],
    ]
    targets, site_variance, residual = y.new_tensor(values).view(3, *shape).unbind(0)
    sites = Sites(targets, site_variance)
    is_converged = torch.tensor([each.is_converged for each in found], device=y.device).view(shape[:-1])
    return sites, SiteInfo(
        sites,
        max((each.num_iterations for each in found), default=0),
        is_converged,
        residual.squeeze(-1),
        sum(each.is_negative for each in found),
    )


def _numbers(values: Tensor, shape: torch.Size) -> list[float]:
    """A tensor as numbers, one for each member of a batch."""
    return (values if values.shape == shape else values.expand(shape)).reshape(-1).tolist()


def _requires_grad(belief: AbstractBelief, likelihood: AbstractLikelihood, y: Tensor) -> bool:
    tensors = [*vars(belief).values(), *vars(likelihood).values(), y]
    return any(isinstance(tensor, Tensor) and tensor.requires_grad for tensor in tensors)
