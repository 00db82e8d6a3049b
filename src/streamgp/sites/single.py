"""The site of a single observation: a fixed point of two numbers, found in numbers."""

import math
from typing import NamedTuple

import torch

from streamgp.errors import NumericalError, StreamGPError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites.site_rule import LARGEST_GAIN, LEAST_PRECISION, ROUNDING, SiteRule

__all__ = ["SingleSite", "find_single_site"]

# Steps of the iteration after which a log-concave site is found between bounds instead: wide beliefs take thousands.
_PATIENCE = 16
# Halvings of any range of doubles, exponents included.
_MOST_HALVINGS = 1100


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


class _ScalarStep(NamedTuple):
    """Result of one evaluation at (pull, precision), as `SiteStep` does of tensors."""

    pull: float
    precision: float
    shift: float
    variance: float
    new_pull: float
    new_precision: float
    residual: float
    is_negative: bool


class _ScalarProblem(NamedTuple):
    """One latent value, one observation and a rule, in numbers of double precision."""

    mean: float
    variance: float
    slack: float
    likelihood: AbstractLikelihood
    y: float
    rule: str

    def evaluate(self, pull: float, precision: float, least: float) -> _ScalarStep:
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
        return _ScalarStep(pull, precision, shift, variance, new_pull, new_precision, residual, second > 0)

    def objective(self, step: _ScalarStep) -> float:
        """The variational bound, or the log posterior density; minus infinity where it overflows."""
        excess = step.precision * self.variance
        quadratic = self.variance * (step.pull / (1.0 + excess)) ** 2
        is_variational = self.rule == "variational"
        spread = step.variance + self.slack if is_variational else 0.0
        value = self.likelihood.expected_log_density_of_one(self.mean + step.shift, spread, self.y) - 0.5 * quadratic
        if is_variational:
            value += 0.5 * (step.precision * step.variance - math.log1p(excess))
        return value if math.isfinite(value) else -math.inf


def find_single_site(
    likelihood: AbstractLikelihood,
    y: float,
    rule: SiteRule,
    *,
    mean: float,
    variance: float,
    slack: float,
    dtype: torch.dtype,
) -> SingleSite:
    """Find the site of a single observation by the iteration of `find_sites`, or between bounds where that is slow.

    Tensors of one element cost a hundred times what their arithmetic does, so that only expectations use them, and all
    else is in numbers of double precision, whatever the dtype.

    Args:
        likelihood: Of the observation.
        y: The observation.
        rule: Which site.
        mean: What is believed of the latent value: its mean.
        variance: Its variance.
        slack: What no observation reduces of it, besides.
        dtype: Of the belief, whose rounding bounds how little a site may say.
    """
    problem = _ScalarProblem(mean, variance, slack, likelihood, y, rule.rule)
    try:
        return _iterate(problem, rule, dtype)
    except (ZeroDivisionError, OverflowError, ValueError) as error:  # of Python's own numbers
        if isinstance(error, StreamGPError):
            raise
        raise NumericalError(
            f"The site of the observation {y:g} is beyond what numbers can hold, where the latent value has mean "
            f"{mean:g} and variance {variance:g}.",
            advice="Check the scale of the kernel and of the targets.",
        ) from error


def _iterate(problem: _ScalarProblem, rule: SiteRule, dtype: torch.dtype) -> SingleSite:
    """Iterate from a site that says nothing."""
    tolerance = rule.tolerance_in(torch.float64)
    least = LEAST_PRECISION[dtype] / max(problem.variance, torch.finfo(dtype).eps)
    step = problem.evaluate(0.0, least, least)
    length, num_iterations = 1.0, 0
    while step.residual > tolerance and num_iterations < rule.max_iterations:
        num_iterations += 1
        if num_iterations == _PATIENCE and problem.likelihood.is_log_concave:
            bounded = _solve_between_bounds(problem, step, least=least, tolerance=tolerance)
            step = bounded if bounded.residual < step.residual else step
            continue
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


def _is_better(problem: _ScalarProblem, step: _ScalarStep, new: _ScalarStep) -> bool:
    """Tell if a step is to be taken, by the criteria of `rules`."""
    if new.residual < step.residual < 1.0:
        return True
    before, after = problem.objective(step), problem.objective(new)
    return after >= before - ROUNDING[torch.float64] * max(abs(before), 1.0)


def _solve_between_bounds(problem: _ScalarProblem, step: _ScalarStep, *, least: float, tolerance: float) -> _ScalarStep:
    r"""The fixed point of a log-concave likelihood, by two nested searches that cannot fail.

    The variational bound is concave in mean and standard deviation. So for each precision $\tau$ one shift has the
    expected gradient of the belief, and of the precisions with those shifts, one is the expected curvature: below it
    curvatures are larger than $\tau$, above it smaller. Both are bracketed by doubling and then narrowed.

    Args:
        problem: With a log-concave likelihood.
        step: Where to start.
        least: The least precision.
        tolerance: Residual that is asked for.
    """
    shift, best = step.shift, step

    def excess(log_precision: float) -> float:
        nonlocal shift, best
        precision = math.exp(log_precision)
        shift = _solve_shift(problem, precision, shift, 0.01 * tolerance)
        new = problem.evaluate(shift * (1.0 / problem.variance + precision), precision, least)
        best = new if new.residual <= best.residual else best
        return log_precision - math.log(new.new_precision)

    low = math.log(least)
    at_low = excess(low)
    if at_low >= 0.0:
        return best
    high, width = max(math.log(step.precision), low) + 1.0, 1.0
    at_high = excess(high)
    while at_high < 0.0:
        low, at_low, width = high, at_high, 2.0 * width
        high += width
        at_high = excess(high)
    last = high - low
    for _ in range(_MOST_HALVINGS):
        if best.residual <= tolerance or last <= 0.0:
            break
        # The secant through both ends, unless it does not get on.
        middle = high - at_high * (high - low) / (at_high - at_low)
        middle = middle if low < middle < high else 0.5 * (low + high)
        at_middle = excess(middle)
        if at_middle < 0.0:
            low, at_low, at_high = middle, at_middle, 0.5 * at_high
        else:
            high, at_high, at_low = middle, at_middle, 0.5 * at_low
        if high - low > 0.5 * last:
            middle = 0.5 * (low + high)
            at_middle = excess(middle)
            low, at_low = (middle, at_middle) if at_middle < 0.0 else (low, at_low)
            high, at_high = (high, at_high) if at_middle < 0.0 else (middle, at_middle)
        last = high - low if low < 0.5 * (low + high) < high else 0.0
    return best


def _solve_shift(problem: _ScalarProblem, precision: float, start: float, tolerance: float) -> float:
    """The shift whose expected gradient is that of the belief, for a given precision, by Newton's method in bounds."""
    variance = problem.variance / (1.0 + precision * problem.variance)
    spread = variance + problem.slack if problem.rule == "variational" else 0.0
    limit = tolerance / math.sqrt(variance)

    def force(shift: float) -> tuple[float, float]:
        first, second = problem.likelihood.expected_derivatives_of_one(problem.mean + shift, spread, problem.y)
        return first - shift / problem.variance, min(second, 0.0) - 1.0 / problem.variance

    shift, (value, slope) = start, force(start)
    sign, width = math.copysign(1.0, value), abs(value / slope)
    near = far = shift
    while value * sign > 0.0 and abs(value) > limit:
        near, far = far, far + sign * width
        shift, (value, slope) = far, force(far)
        width *= 2.0
    for _ in range(_MOST_HALVINGS):
        middle = 0.5 * (near + far)
        if abs(value) <= limit or middle in (near, far):
            break
        newton, last = shift - value / slope, abs(value)
        shift = newton if min(near, far) < newton < max(near, far) else middle
        value, slope = force(shift)
        near, far = (shift, far) if value * sign > 0.0 else (near, shift)
        if abs(value) > 0.5 * last:  # Newton's method does not get on
            shift = 0.5 * (near + far)
            value, slope = force(shift)
            near, far = (shift, far) if value * sign > 0.0 else (near, shift)
    return shift
