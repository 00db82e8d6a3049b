"""Functions known to rise along a direction: signs of slopes, placed where the belief has them wrong."""

import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from streamgp.checks import ArrayLike, check_count
from streamgp.conditioning.conditioned_gp import ConditionedProcess
from streamgp.conditioning.observation import Observation
from streamgp.errors import ShapeError, StreamGPWarning
from streamgp.evidence import Evidence, derivative
from streamgp.gp import AbstractProcess, SparseProcess
from streamgp.likelihoods import Bernoulli

__all__ = ["place_signs"]

Belief = TypeVar("Belief")

# Width of the step of a sign, in prior standard deviations of the slope. If smaller, signs are no surer, and moments
# are found in more steps; if larger, slopes below zero are let pass.
_WIDTH = 0.1


def place_signs(
    process: SparseProcess | ConditionedProcess,
    X: Tensor,
    along: ArrayLike,
    *,
    max_signs: int,
    step: Callable[[Observation], Belief],
    process_of: Callable[[Belief], AbstractProcess],
) -> Belief:
    r"""Observe that slopes along a direction are positive, until their means are.

    Each round observes the sign of one more slope, that which is most deviations below zero, as
    $P(\text{positive}) = \Phi(s / \nu)$ with $\nu$ a tenth of the slope's prior deviation, and finds all sites anew by
    matching moments.

    Args:
        process: Belief before; not modified.
        X: Inputs `(n, d)` at which the function shall rise.
        along: The direction, `(d,)`, or one for each input.
        max_signs: Most signs that are observed.
        step: The belief after an observation of signs.
        process_of: The process of such a belief.

    References:
        Riihimäki, Vehtari (2010), Gaussian processes with monotonicity information.
    """
    max_signs = check_count(max_signs, "max_signs")
    if X.dim() != 2 or not len(X) or process.batch_shape:
        raise ShapeError(
            f"X must have shape (n, d) with at least one input, and the GP no leading axes, but these have shapes "
            f"{tuple(X.shape)} and {tuple(process.batch_shape)}. Condition the members of a batch one by one."
        )
    slopes = derivative(X, along)
    prior = process.prior if isinstance(process, SparseProcess) else process.base.prior
    unit = _WIDTH * prior.variance(slopes).sqrt()
    current: AbstractProcess = process
    placed: list[int] = []
    found = step(_signs(slopes.select(torch.tensor(placed, dtype=torch.long)), unit[:0], process))
    while len(placed) <= max_signs:
        height = current.mean(slopes) / current.variance(slopes).clamp_min(torch.finfo(X.dtype).tiny).sqrt()
        height[placed] = torch.inf  # what is known of these is known
        if float(height.min()) >= 0.0:
            return found
        if len(placed) == max_signs:
            break
        placed = sorted([*placed, int(height.argmin())])
        at = torch.tensor(placed, device=X.device)
        found = step(_signs(slopes.select(at), unit[at], process))
        current = process_of(found)
    warnings.warn(
        f"The mean still falls at {int((height < 0).sum())} of {len(X)} inputs after {max_signs} signs. Raise "
        "max_signs.",
        StreamGPWarning,
        stacklevel=3,
    )
    return found


def _signs(slopes: Evidence, unit: Tensor, process: SparseProcess | ConditionedProcess) -> Observation:
    """Observations that slopes are positive, in units of the width of a sign."""
    directions = slopes.directions
    assert directions is not None
    rows = derivative(slopes.points, directions / unit.unsqueeze(-1)) if len(unit) else slopes
    return Observation.read(
        rows,
        torch.ones(len(unit), dtype=slopes.dtype, device=slopes.device),
        process,
        noise_variance=None,
        likelihood=Bernoulli("probit"),
        sites="moments",
    )
