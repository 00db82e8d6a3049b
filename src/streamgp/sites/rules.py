"""Gaussian sites: observations of any likelihood as Gaussian ones."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.checks import check_choice, check_count
from streamgp.errors import ConvergenceError, StreamGPWarning, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.shapes import broadcast_shapes
from streamgp.sites.belief import AbstractBelief
from streamgp.sites.implicit import attach_fixed_point_gradient
from streamgp.storage import register

__all__ = ["SiteInfo", "SiteRule", "Sites", "find_sites"]

RULES = ("variational", "laplace", "paper")
# The residual of the fixed point, in units of posterior standard deviations, at which the iteration stops. In single
# precision the residual itself carries rounding of that order for counts of 1e5.
_TOLERANCE = {torch.float64: 1e-7, torch.float32: 5e-3}
# The least precision of a site, relative to that of the belief: it keeps targets finite and changes no prediction.
_LEAST_PRECISION = {torch.float64: 1e-8, torch.float32: 1e-5}
# The residual beyond which sites that did not converge are refused instead of returned with a warning.
_WORTHLESS = 1.0
# How many times its variance a site may explain away in one step.
_LARGEST_GAIN = 1e3
# A step may lower the objective by rounding, relative to its size.
_ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5}


@final
@dataclass(frozen=True)
class SiteRule:
    """How observations become Gaussian sites.

    Attributes:
        rule: `"variational"` (expectations under the belief, the fixed point of natural-gradient steps), `"laplace"`
            (the mode under the belief) or `"paper"` (the mode under the prior, as printed; shrinks twice).
        tolerance: Residual, in posterior standard deviations, below which the iteration has converged; 1e-7 in double
            and 5e-3 in single precision by default.
        max_iterations: Steps after which it gives up, with a warning.
    """

    rule: str = "variational"
    tolerance: float | None = None
    max_iterations: int = 200

    def __post_init__(self) -> None:
        """Check the options."""
        check_choice(self.rule, RULES, "sites")
        check_count(self.max_iterations, "max_iterations")
        if self.tolerance is not None and not self.tolerance > 0:
            raise ValueRangeError(f"tolerance must be positive, but is {self.tolerance!r}.")


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
    tolerance for every observation, $v$ being the variance after the observations.

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
    state, ending = _iterate(belief, likelihood, y, rule)
    if torch.is_grad_enabled() and _requires_grad(belief, likelihood, y):
        state = attach_fixed_point_gradient(lambda x: _improve(belief, likelihood, y, rule, x).state, state)
    pull, precision = state.unbind(0)
    targets = belief.mean + pull / precision
    if rule.rule == "paper":
        targets = belief.mean + belief.update(pull, precision).shift
    sites = Sites(targets, 1.0 / precision)
    return sites, SiteInfo(Sites(targets.detach(), sites.variance.detach()), *ending)


class _Step(NamedTuple):
    """What one evaluation at a state (pull, precision) tells."""

    state: Tensor  # where the fixed-point map leads
    objective: Tensor
    residual: Tensor
    reach: Tensor  # the largest share of the way there that a step may go
    num_negative: Tensor


def _iterate(
    belief: AbstractBelief, likelihood: AbstractLikelihood, y: Tensor, rule: SiteRule
) -> tuple[Tensor, tuple[int, Tensor, Tensor, int]]:
    """Find the fixed point; returns it and what `SiteInfo` tells of the iteration."""
    with torch.no_grad():
        tolerance = _TOLERANCE[y.dtype] if rule.tolerance is None else rule.tolerance
        shape = broadcast_shapes(y.shape, belief.mean.shape)
        least = _least_precision(belief).expand(shape)
        x = torch.stack([torch.zeros_like(least), least])
        step = _improve(belief, likelihood, y, rule, x)
        length = torch.ones(shape[:-1], dtype=y.dtype, device=y.device)
        num_iterations = 0
        while num_iterations < rule.max_iterations:
            is_open = step.residual > tolerance
            if not is_open.any():
                break
            num_iterations += 1
            # Members of the batch that have converged keep their sites.
            share = torch.where(is_open, torch.minimum(length, step.reach), 0.0)
            x_new = x + share.unsqueeze(-1) * (step.state - x)
            new = _improve(belief, likelihood, y, rule, x_new)
            slack = _ROUNDING[y.dtype] * step.objective.abs().clamp_min(1.0)
            # Close to the fixed point the objective is flat to rounding, and the residual is the better judge.
            is_closer = (new.residual < step.residual) & (step.residual < 1.0)
            is_better = (new.objective >= step.objective - slack) | is_closer
            x = torch.where(is_better.unsqueeze(-1), x_new, x)
            step = _choose(is_better, new, step)
            length = torch.where(is_better, (2.0 * length).clamp_max(1.0), 0.5 * length)
        is_converged = step.residual <= tolerance
    if not bool(is_converged.all()):
        message = (
            f"The {rule.rule} sites of {int((~is_converged).sum())} of {is_converged.numel()} batches did not converge "
            f"in {num_iterations} steps: their residual is {float(step.residual.max()):.1e} posterior standard "
            f"deviations, and {tolerance:.1e} was asked for. Raise max_iterations of SiteRule, check the scale of "
            "kernel and targets, or use more inducing points."
        )
        if bool((step.residual > _WORTHLESS).any()):
            raise ConvergenceError(message)
        warnings.warn(message, StreamGPWarning, stacklevel=2)
    return x, (num_iterations, is_converged, step.residual, int(step.num_negative.sum()))


def _improve(belief: AbstractBelief, likelihood: AbstractLikelihood, y: Tensor, rule: SiteRule, x: Tensor) -> _Step:
    """One step of the fixed-point map, and the objective at its start."""
    pull, precision = x.unbind(0)
    updated = belief.update(pull, precision)
    mean = belief.mean + updated.shift
    if rule.rule == "variational":
        variance = updated.variance if belief.slack is None else updated.variance + belief.slack
        first, second = likelihood.expected_derivatives(mean, variance, y)
        log_density = likelihood.expected_log_density(mean, variance, y)
        shrinkage = (precision * updated.variance).sum(-1)
        divergence = 0.5 * (updated.quadratic - shrinkage + updated.log_determinant)
    else:
        first, second = likelihood.derivatives(mean, y)
        log_density, divergence = likelihood.log_density(mean, y), 0.5 * updated.quadratic
    new_precision = torch.maximum(-second, _least_precision(belief))
    new_pull = first + new_precision * updated.shift
    size = updated.variance.detach()
    residual = torch.maximum((first - updated.force).abs() * size.sqrt(), (new_precision - precision).abs() * size)
    objective = log_density.sum(-1) - divergence
    # An overflow makes the objective NaN or infinite; such a step is never better.
    objective = torch.where(torch.isfinite(objective), objective, -torch.inf)
    if not y.shape[-1]:
        nothing = torch.zeros_like(objective)
        return _Step(x, objective, nothing, torch.ones_like(objective), nothing.long())
    # Expectations under a wide belief may be astronomical. At the fixed point precision times variance is at most
    # one, so who wants far more takes a small part of the step, and looks again from there.
    gain = (new_precision * updated.variance).detach().amax(-1)
    reach = _LARGEST_GAIN / gain.clamp_min(_LARGEST_GAIN)
    largest = residual.detach().nan_to_num(nan=torch.inf).amax(-1)
    return _Step(torch.stack([new_pull, new_precision]), objective, largest, reach, (second > 0).sum(-1))


def _least_precision(belief: AbstractBelief) -> Tensor:
    variance = belief.variance().detach()
    return _LEAST_PRECISION[variance.dtype] / variance.clamp_min(torch.finfo(variance.dtype).eps)


def _choose(is_new: Tensor, new: _Step, old: _Step) -> _Step:
    """Take the new step for some members of the batch."""
    return _Step(
        torch.where(is_new.unsqueeze(-1), new.state, old.state),
        torch.where(is_new, new.objective, old.objective),
        torch.where(is_new, new.residual, old.residual),
        torch.where(is_new, new.reach, old.reach),
        torch.where(is_new, new.num_negative, old.num_negative),
    )


def _requires_grad(belief: AbstractBelief, likelihood: AbstractLikelihood, y: Tensor) -> bool:
    tensors = [*vars(belief).values(), *vars(likelihood).values(), y]
    return any(isinstance(tensor, Tensor) and tensor.requires_grad for tensor in tensors)
