"""The rule of Gaussian sites: what they stand for, and when the iteration that finds them ends."""

import math
import warnings
from dataclasses import dataclass
from typing import final

import torch

from streamgp.checks import check_choice, keep_count
from streamgp.errors import ConvergenceError, StreamGPWarning, ValueRangeError

__all__ = ["DAMPING", "LARGEST_GAIN", "LEAST_PRECISION", "ROUNDING", "SiteRule"]

_RULES = ("variational", "laplace", "moments", "paper")
# The residual of the fixed point, in units of posterior standard deviations, at which the iteration stops. In single
# precision the residual itself carries rounding of that order for counts of 1e5.
_TOLERANCE = {torch.float64: 1e-7, torch.float32: 5e-3}
# The residual beyond which sites that did not converge are refused instead of returned with a warning.
_WORTHLESS = 1.0
_ADVICE = "Check the scale of kernel and targets, use more inducing points, or raise max_iterations of a SiteRule."
# The least precision of a site, relative to that of the belief: it keeps targets finite and changes no prediction.
LEAST_PRECISION = {torch.float64: 1e-8, torch.float32: 1e-5}
# How many times its variance a site may explain away in one step.
LARGEST_GAIN = 1e3
# The share of the way to new moments that a step goes; all of it overshoots where sites of one value push alike.
DAMPING = 0.5
# A step may lower the objective by rounding, relative to its size.
ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5}


@final
@dataclass(frozen=True)
class SiteRule:
    """Rule by which observations become Gaussian sites.

    Attributes:
        rule: `"variational"` (expectations under the belief, the fixed point of natural-gradient steps), `"laplace"`
            (the mode under the belief), `"moments"` (expectation propagation: mean and variance with each observation
            alone, given the sites of the others; best for steep likelihoods such as signs, bounds and grades) or
            `"paper"` (the mode under the prior, as printed; shrinks twice).
        tolerance: Residual, in posterior standard deviations, below which the iteration has converged; 1e-7 in double
            and 5e-3 in single precision by default.
        max_iterations: Steps after which it gives up, with a warning.
    """

    rule: str = "variational"
    tolerance: float | None = None
    max_iterations: int = 200

    def __post_init__(self) -> None:
        """Check the options."""
        check_choice(self.rule, _RULES, "sites")
        keep_count(self, "max_iterations")
        if self.tolerance is not None and not 0.0 < self.tolerance < math.inf:
            raise ValueRangeError(f"tolerance must be positive, but is {self.tolerance!r}.")

    def tolerance_in(self, dtype: torch.dtype) -> float:
        """The residual below which the iteration has converged."""
        return _TOLERANCE[dtype] if self.tolerance is None else self.tolerance

    def report(
        self, *, num_open: int, num_batches: int, num_iterations: int, residual: float, tolerance: float
    ) -> None:
        """Warn of an iteration that did not converge, or refuse what it found.

        Args:
            num_open: How many batches did not converge.
            num_batches: How many there are.
            num_iterations: How many steps were taken.
            residual: The largest residual; NaN and infinity are worthless, too.
            tolerance: What was asked for.
        """
        message = (
            f"The {self.rule} sites of {num_open} of {num_batches} batches did not converge "
            f"in {num_iterations} steps: their residual is {residual:.1e} posterior standard "
            f"deviations, and {tolerance:.1e} was asked for."
        )
        if not residual <= _WORTHLESS:
            raise ConvergenceError(message, advice=_ADVICE)
        warnings.warn(f"{message} {_ADVICE}", StreamGPWarning, stacklevel=4)
