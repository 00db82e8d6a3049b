"""Gaussian sites: observations of any likelihood as Gaussian ones, by steps to a fixed point."""

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.shapes import broadcast_shapes
from streamgp.sites.acceleration import Anderson
from streamgp.sites.belief import AbstractBelief, Updated
from streamgp.sites.implicit import attach_fixed_point_gradient
from streamgp.sites.moments import improve_moments
from streamgp.sites.single import find_single_site
from streamgp.sites.site_rule import DAMPING, LARGEST_GAIN, LEAST_PRECISION, ROUNDING, SiteRule
from streamgp.storage import register

__all__ = ["Found", "SiteInfo", "SiteStep", "Sites", "find_sites", "improve", "iterate"]

# Up to so many single observations are solved one after the other, in numbers; more are faster as tensors.
_FEW = 8
# Steps after which an iteration goes on in double precision; nearly all of moderate sites end before.
_PATIENCE = 40


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


class SiteStep(NamedTuple):
    """Result of one evaluation at a state (pull, precision).

    Attributes:
        state: Where the fixed-point map leads.
        mean: Mean of the belief at this state.
        updated: The belief given the sites of this state.
        residual: How far the state is from the fixed point, for each member of the batch.
        step_limit: The largest share of the way there that a step may go.
        num_negative: Sites whose curvature is negative.
    """

    state: Tensor
    mean: Tensor
    updated: Updated
    residual: Tensor
    step_limit: Tensor
    num_negative: Tensor


class Found(NamedTuple):
    """End of an iteration, in the precision that it had then.

    Attributes:
        state: Pull and precision.
        belief: The belief of its last steps, in their precision.
        y: The observations, likewise.
        num_iterations: Steps taken.
        is_converged: For each member of the batch.
        residual: Likewise.
        num_negative: Sites whose curvature is negative.
    """

    state: Tensor
    belief: AbstractBelief
    y: Tensor
    num_iterations: int
    is_converged: Tensor
    residual: Tensor
    num_negative: int


def iterate(belief: AbstractBelief, likelihood: AbstractLikelihood, y: Tensor, rule: SiteRule) -> Found:
    """Find the fixed point.

    What takes long may be lost in rounding: a step of single precision is as large as the posterior deviations of
    counts of millions, and a covariance with an eigenvalue just below zero has no fixed point at all beside sites of
    high precision. Such an iteration goes on in double precision, with a covariance that is one.
    """
    tolerance = rule.tolerance_in(y.dtype)
    if rule.rule == "moments":  # differences of precisions that may be large
        belief, y = belief.in_double(), y.double()
    with torch.no_grad():
        shape = broadcast_shapes(y.shape, belief.mean.shape)
        least = _least_precision(belief).expand(shape)
        start = torch.stack([torch.zeros_like(least), least])
        patience = rule.max_iterations if rule.rule == "moments" else min(_PATIENCE, rule.max_iterations)
        x, step, num_iterations = _search(
            belief, likelihood, y, rule, start, tolerance=tolerance, max_iterations=patience
        )
    if rule.rule != "moments" and num_iterations < rule.max_iterations and bool((step.residual > tolerance).any()):
        belief, y = belief.in_double(), y.double()
        with torch.no_grad():
            x, step, num_more = _search(
                belief,
                likelihood,
                y,
                rule,
                x.double(),
                tolerance=tolerance,
                max_iterations=rule.max_iterations - num_iterations,
            )
        num_iterations += num_more
    is_converged = step.residual <= tolerance
    if not bool(is_converged.all()):
        rule.report(
            num_open=int((~is_converged).sum()),
            num_batches=is_converged.numel(),
            num_iterations=num_iterations,
            residual=float(step.residual.max()),
            tolerance=tolerance,
        )
    return Found(x, belief, y, num_iterations, is_converged, step.residual, int(step.num_negative.sum()))


def _search(
    belief: AbstractBelief,
    likelihood: AbstractLikelihood,
    y: Tensor,
    rule: SiteRule,
    x: Tensor,
    *,
    tolerance: float,
    max_iterations: int,
) -> tuple[Tensor, SiteStep, int]:
    """Steps from a state until all members of the batch have converged, or too many were taken."""
    step = improve(belief, likelihood, y, rule, x)
    least = _least_precision(belief).expand(x.shape[1:])
    is_moments = rule.rule == "moments"
    length = torch.ones(x.shape[1:-1], dtype=y.dtype, device=y.device)
    num_iterations = 0
    objective: Tensor | None = None  # at x, where it was needed
    # Members of a batch are problems of their own, but where an observation looks at all of them.
    anderson = Anderson() if likelihood.num_latents > 1 else None
    while num_iterations < max_iterations:
        is_open = step.residual > tolerance
        if not is_open.any():
            break
        num_iterations += 1
        # Members of the batch that have converged keep their sites.
        share = torch.where(is_open, torch.minimum(length, step.step_limit), 0.0)
        x_new = x + share.unsqueeze(-1) * (step.state - x)
        if anderson is not None and bool((step.residual < 1.0).all()):
            x_far = _extrapolate(anderson, x, step, least)
            new = improve(belief, likelihood, y, rule, x_far)
            if bool((new.residual < step.residual).all()):
                x, step, objective = x_far, new, None
                continue
            anderson.forget()
        new = improve(belief, likelihood, y, rule, x_new)
        if is_moments:  # there is no objective that must not fall; steps are short instead
            x, step, length = x_new, new, torch.full_like(length, DAMPING)
            continue
        is_better, objective = _is_better(likelihood, y, rule, x=x, x_new=x_new, step=step, new=new, before=objective)
        if bool(is_better.all()):
            x, step, length = x_new, new, (2.0 * length).clamp_max(1.0)
            continue
        x = torch.where(is_better.unsqueeze(-1), x_new, x)
        step = _choose(is_better, new, step)
        length = torch.where(is_better, (2.0 * length).clamp_max(1.0), 0.5 * length)
    return x, step, num_iterations


def _extrapolate(anderson: Anderson, x: Tensor, step: SiteStep, least: Tensor) -> Tensor:
    """The accelerated step, with residuals in posterior standard deviations."""
    size = step.updated.variance
    pull, precision = anderson.propose(x, step.state - x, torch.stack([size.sqrt(), size])).unbind(0)
    return torch.stack([pull, torch.maximum(precision, least)])


def improve(belief: AbstractBelief, likelihood: AbstractLikelihood, y: Tensor, rule: SiteRule, x: Tensor) -> SiteStep:
    """One step of the fixed-point map."""
    pull, precision = x.unbind(0)
    updated = belief.update(pull, precision)
    if rule.rule == "moments" and y.shape[-1]:
        found = improve_moments(belief, likelihood, y, x, updated, _least_precision(belief))
        return SiteStep(found.state, belief.mean + updated.shift, updated, *found[1:])
    mean = belief.mean + updated.shift
    if rule.rule == "variational":
        first, second = likelihood.expected_derivatives(mean, updated.spread, y)
    else:
        first, second = likelihood.derivatives(mean, y)
    new_precision = torch.maximum(-second, _least_precision(belief))
    new_pull = first + new_precision * updated.shift
    size = updated.variance.detach()
    residual = torch.maximum((first - updated.gradient).abs() * size.sqrt(), (new_precision - precision).abs() * size)
    if not y.shape[-1]:
        nothing = y.new_zeros(x.shape[1:-1])
        return SiteStep(x, mean, updated, nothing, torch.ones_like(nothing), nothing.long())
    # Expectations under a wide belief may be astronomical. At the fixed point precision times variance is at most
    # one, so who wants far more takes a small part of the step, and looks again from there.
    gain = (new_precision * updated.variance).detach().amax(-1)
    step_limit = LARGEST_GAIN / gain.clamp_min(LARGEST_GAIN)
    largest = residual.detach().nan_to_num(nan=torch.inf).amax(-1)
    if likelihood.num_latents > 1:  # latent functions of one observation take their steps together
        largest = largest.amax(-1, keepdim=True).expand_as(largest)
        step_limit = step_limit.amin(-1, keepdim=True).expand_as(step_limit)
    return SiteStep(torch.stack([new_pull, new_precision]), mean, updated, largest, step_limit, (second > 0).sum(-1))


def _is_better(
    likelihood: AbstractLikelihood,
    y: Tensor,
    rule: SiteRule,
    *,
    x: Tensor,
    x_new: Tensor,
    step: SiteStep,
    new: SiteStep,
    before: Float[Tensor, "*s"] | None,
) -> tuple[Bool[Tensor, "*s"], Float[Tensor, "*s"] | None]:
    """Tell which members of the batch are to take their step, and the objective where they are then, if it was needed.

    The objective may not fall, but by rounding. It need not be known close to the fixed point, where it is flat to
    rounding and the residual the better judge.
    """
    is_closer = (new.residual < step.residual) & (step.residual < 1.0)
    if bool(is_closer.all()):
        return is_closer, None
    before = _objective(likelihood, y, rule, x, step) if before is None else before
    after = _objective(likelihood, y, rule, x_new, new)
    is_better = (after >= before - ROUNDING[y.dtype] * before.abs().clamp_min(1.0)) | is_closer
    return is_better, torch.where(is_better, after, before)


def _objective(
    likelihood: AbstractLikelihood, y: Tensor, rule: SiteRule, x: Tensor, step: SiteStep
) -> Float[Tensor, "*s"]:
    """The variational bound, or the log posterior density."""
    updated = step.updated
    if rule.rule == "variational":
        log_density = likelihood.expected_log_density(step.mean, updated.spread, y)
        shrinkage = (x[1] * updated.variance).sum(-1)
        divergence = 0.5 * (updated.quadratic - shrinkage + updated.log_determinant)
    else:
        log_density, divergence = likelihood.log_density(step.mean, y), 0.5 * updated.quadratic
    objective = log_density.sum(-1) - divergence
    if likelihood.num_latents > 1:
        objective = (log_density.sum((-2, -1)) - divergence.sum(-1)).unsqueeze(-1).expand_as(divergence)
    # An overflow makes the objective NaN or infinite; such a step is never better.
    return torch.where(torch.isfinite(objective), objective, -torch.inf)


def _least_precision(belief: AbstractBelief) -> Tensor:
    variance = belief.variance().detach()
    return LEAST_PRECISION[variance.dtype] / variance.clamp_min(torch.finfo(variance.dtype).eps)


def _choose(is_new: Bool[Tensor, "*s"], new: SiteStep, old: SiteStep) -> SiteStep:
    """Take the new step for some members of the batch."""
    many = is_new.unsqueeze(-1)
    return SiteStep(
        torch.where(many, new.state, old.state),
        torch.where(many, new.mean, old.mean),
        Updated(
            *(
                torch.where(is_new if a.dim() == is_new.dim() else many, a, b)
                for a, b in zip(new.updated, old.updated, strict=True)
            )
        ),
        torch.where(is_new, new.residual, old.residual),
        torch.where(is_new, new.step_limit, old.step_limit),
        torch.where(is_new, new.num_negative, old.num_negative),
    )
