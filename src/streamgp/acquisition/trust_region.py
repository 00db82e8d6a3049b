"""The trust region of TuRBO: a box around the best point that grows with success and shrinks with failure."""

import math
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import keep_count
from streamgp.errors import ValueRangeError
from streamgp.seeds import sobol_points
from streamgp.storage import register

__all__ = ["Region", "RegionInfo", "RegionRules", "draw_in_region", "update_region"]

# Candidates differ from the center in so many coordinates on average.
_NUM_CHANGED = 20
# A side is at most so much longer or shorter than the median one, as a logarithm. TuRBO's own bounds of lengthscales,
# 0.005 and 2, have the same ratio; without bounds a prior that lets lengthscales grow (half-Cauchy: to 1e37) makes the
# other sides too short to search.
_MOST_STRETCHED = math.log(20.0)


@register
@final
@dataclass(frozen=True)
class RegionRules:
    r"""Rules by which a trust region changes.

    Attributes:
        first_length: Side of the box at the start, before it is stretched along the lengthscales; the whole space is
            the unit cube.
        min_length: A region that falls below this is given up.
        max_length: The most.
        success_tolerance: After so many successful steps in a row the length is doubled.
        failure_tolerance: After so many evaluations without success in a row it is halved: $\max(4, d)$ by default,
            which for steps of $q$ evaluations is $\lceil \max(4, d) / q \rceil$ steps.
        improvement: A step succeeds if it improves the best value by this share of its size.

    References:
        Eriksson, Pearce, Gardner, Turner, Poloczek (2019), Scalable global optimization via local Bayesian
        optimization.
    """

    first_length: float = 0.8
    min_length: float = 2.0**-7
    max_length: float = 1.6
    success_tolerance: int = 10
    failure_tolerance: int | None = None
    improvement: float = 1e-3

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 0.0 < self.min_length <= self.first_length <= self.max_length < math.inf:
            raise ValueRangeError(
                "Lengths of a trust region must be positive and in the order min_length, first_length, max_length, but "
                f"are {self.min_length:g}, {self.first_length:g}, {self.max_length:g}."
            )
        keep_count(self, "success_tolerance")
        if self.failure_tolerance is not None:
            keep_count(self, "failure_tolerance")
        if not 0.0 <= self.improvement < math.inf:
            raise ValueRangeError(f"improvement must not be negative, but is {self.improvement!r}.")

    def start(self) -> "Region":
        """A region before any data."""
        return Region(self.first_length)


@register
@final
@dataclass(frozen=True)
class Region:
    """The state of a trust region; where it is follows from the data.

    Attributes:
        length: Side of the box.
        best: The largest value so far.
        num_successes: Successful steps in a row.
        num_failed: Evaluations without success in a row.
    """

    length: float
    best: float = -math.inf
    num_successes: int = 0
    num_failed: int = 0


@final
@dataclass(frozen=True)
class RegionInfo:
    """Outcome of a step.

    Attributes:
        is_success: Whether it improved the best value by enough.
        is_exhausted: Whether the region has become too small, and the search has to start elsewhere.
    """

    is_success: bool
    is_exhausted: bool


def update_region(
    region: Region, values: Float[Tensor, " n"], *, num_dims: int, rules: RegionRules
) -> tuple[Region, RegionInfo]:
    """Count the outcome of a step.

    Args:
        region: Before the step.
        values: What is maximized, at all points of the step; NaN where an evaluation failed.
        num_dims: Number of dimensions.
        rules: How the region changes.

    Returns:
        The region after the step, and what came of it. Nothing changes without values.
    """
    if not len(values):
        return region, RegionInfo(is_success=False, is_exhausted=False)
    best = max(region.best, float(values.nan_to_num(nan=-math.inf).max()))
    least = region.best + rules.improvement * abs(region.best) if math.isfinite(region.best) else region.best
    if best > least:
        num_successes, length = region.num_successes + 1, region.length
        if num_successes == rules.success_tolerance:
            num_successes, length = 0, min(2.0 * length, rules.max_length)
        return Region(length, best, num_successes, 0), RegionInfo(is_success=True, is_exhausted=False)
    num_failed, length = region.num_failed + len(values), region.length
    if num_failed >= (rules.failure_tolerance or max(4, num_dims)):
        num_failed, length = 0, 0.5 * length
    changed = replace(region, length=length, best=best, num_successes=0, num_failed=num_failed)
    return changed, RegionInfo(is_success=False, is_exhausted=length < rules.min_length)


def draw_in_region(
    num_points: int,
    center: Float[Tensor, " d"],
    *,
    length: float,
    lengthscale: Float[Tensor, " d"],
    generator: torch.Generator,
) -> Float[Tensor, "n d"]:
    """Draw candidates in a region, within the unit cube.

    The sides of the box are the length times the lengthscales, kept within a factor of 20 of their median and scaled to
    a geometric mean of one. Candidates come from a scrambled Sobol sequence, and keep most coordinates of the center
    where there are many: each is changed with probability min(1, 20 / d), and at least one of them.

    Args:
        num_points: How many.
        center: The best point.
        length: Of the region.
        lengthscale: Of the model.
        generator: Source of randomness.
    """
    d = len(center)
    logarithm = lengthscale.log()
    middle = logarithm.median()
    logarithm = logarithm.clamp(middle - _MOST_STRETCHED, middle + _MOST_STRETCHED)
    half = 0.5 * length * (logarithm - logarithm.mean()).exp()
    lower, upper = (center - half).clamp(0.0, 1.0), (center + half).clamp(0.0, 1.0)
    seed = int(torch.randint(2**31, (), generator=generator))
    points = lower + (upper - lower) * sobol_points(num_points, d, seed=seed).to(center)
    is_changed = torch.rand(num_points, d, generator=generator) < min(1.0, _NUM_CHANGED / d)
    one = torch.randint(d, (num_points, 1), generator=generator)
    is_alone = ~is_changed.any(-1, keepdim=True)
    is_changed = is_changed | (is_alone & (torch.arange(d) == one))
    return torch.where(is_changed, points, center)
