"""The site of a single observation: a fixed point of two numbers, found in numbers."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites.site_rule import LARGEST_GAIN, LEAST_PRECISION, ROUNDING, SiteRule

__all__ = ["SingleSite", "find_single_site"]


class SingleSite(NamedTuple):
    r"""A site $\exp(r e - \frac12 \tau e^2)$ in the shift $e$ of one latent value, and where it leads.

    Attributes:
        pull: $r$.
        precision: $\tau$.
        shift: How far it moves the mean.
        residual: Of the fixed point, in posterior standard deviations.
        is_converged: Whether that is below the tolerance.
        num_iterations: Steps taken.
        is_negative: Whether the curvature was positive at the end, so that the precision was bounded at zero.
    """

    pull: float
    precision: float
    shift: float
    residual: float
    is_converged: bool
    num_iterations: int
    is_negative: bool


class _Step(NamedTuple):
    """What one evaluation at (pull, precision) tells, as in `rules`."""

    pull: float
    precision: float
    shift: float
    variance: float
    new_pull: float
    new_precision: float
    residual: float
    is_negative: bool


class _Problem(NamedTuple):
    """One latent value, one observation and a rule, in numbers of double precision."""

    mean: float
    variance: float
    slack: float
    likelihood: AbstractLikelihood
    y: Tensor
    rule: str

    @property
    def least_precision(self) -> float:
        dtype = self.y.dtype
        return LEAST_PRECISION[dtype] / max(self.variance, torch.finfo(dtype).eps)

    def evaluate(self, pull: float, precision: float, least: float) -> _Step:
        """One step of the fixed-point map."""
        factor = 1.0 + precision * self.variance
        gradient, variance = pull / factor, self.variance / factor
        shift = self.variance * gradient
        spread = variance + self.slack if self.rule == "variational" else 0.0
        first, second = self.likelihood.expected_derivatives_of_one(self.mean + shift, spread, self.y)
        new_precision = max(-second, least)
        residual = max(abs(first - gradient) * math.sqrt(variance), abs(new_precision - precision) * variance)
        residual = math.inf if math.isnan(residual) else residual
        new_pull = first + new_precision * shift
        return _Step(pull, precision, shift, variance, new_pull, new_precision, residual, second > 0)

    def objective(self, step: _Step) -> float:
        """The variational bound, or the log posterior density; minus infinity where it overflows."""
        excess = step.precision * self.variance
        quadratic = self.variance * (step.pull / (1.0 + excess)) ** 2
        mean = torch.tensor([self.mean + step.shift], dtype=torch.float64, device=self.y.device)
        if self.rule == "variational":
            expected = self.likelihood.expected_log_density(mean, mean.new_tensor([step.variance + self.slack]), self.y)
            value = float(expected) - 0.5 * (quadratic - step.precision * step.variance + math.log1p(excess))
        else:
            value = float(self.likelihood.log_density(mean, self.y)) - 0.5 * quadratic
        return value if math.isfinite(value) else -math.inf


def find_single_site(
    likelihood: AbstractLikelihood, y: Tensor, rule: SiteRule, *, mean: float, variance: float, slack: float
) -> SingleSite:
    """Find the site of a single observation by the iteration of `find_sites`.

    Tensors of one element cost a hundred times what their arithmetic does, so that only expectations use them, and all
    else is in numbers of double precision, whatever the dtype.

    Args:
        likelihood: Of the observation.
        y: The observation, one element with any axes.
        rule: Which site.
        mean: What is believed of the latent value: its mean.
        variance: Its variance.
        slack: What no observation reduces of it, besides.
    """
    problem = _Problem(mean, variance, slack, likelihood, y, rule.rule)
    tolerance, least = rule.tolerance_in(torch.float64), problem.least_precision
    step = problem.evaluate(0.0, least, least)
    length, num_iterations = 1.0, 0
    while step.residual > tolerance and num_iterations < rule.max_iterations:
        num_iterations += 1
        # As in `rules`: who wants far more precision than fits takes a small part of the step.
        share = min(length, LARGEST_GAIN / max(step.new_precision * step.variance, LARGEST_GAIN))
        new = problem.evaluate(
            step.pull + share * (step.new_pull - step.pull),
            step.precision + share * (step.new_precision - step.precision),
            least,
        )
        if _is_better(problem, step, new):
            step, length = new, min(2.0 * length, 1.0)
        else:
            length *= 0.5
    is_converged = step.residual <= tolerance
    if not is_converged:
        rule.report(
            num_open=1, num_batches=1, num_iterations=num_iterations, residual=step.residual, tolerance=tolerance
        )
    return SingleSite(
        step.pull, step.precision, step.shift, step.residual, is_converged, num_iterations, step.is_negative
    )


def _is_better(problem: _Problem, step: _Step, new: _Step) -> bool:
    """Whether to take a step, by the criteria of `rules`."""
    if new.residual < step.residual < 1.0:
        return True
    before, after = problem.objective(step), problem.objective(new)
    return after >= before - ROUNDING[torch.float64] * max(abs(before), 1.0)
