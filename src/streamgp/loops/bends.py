"""Where outcomes begin to count by their logarithm."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.loops.units import OutcomeUnits

__all__ = ["bend_around", "bend_bad"]

# Where all outcomes are on one side of their bounds, the width is this quantile of the distances.
_NEAR = 0.25


def bend_bad(z: Float[Tensor, " n"], *, sign: float, good_share: float) -> OutcomeUnits:
    """Bend where outcomes are worse than all good ones by more than the best is better than these.

    Args:
        z: Outcomes of an objective.
        sign: Positive if large ones are wanted.
        good_share: The share of outcomes that count as good.
    """
    wanted = sign * z
    middle = float(wanted.quantile(1.0 - good_share, interpolation="lower"))
    best, worst = float(wanted.max()), float(wanted.min())
    width = best - middle
    if not worst < middle - width < middle:
        return OutcomeUnits(scale=sign)
    knee = sign * (middle - width)
    if sign > 0.0:
        return OutcomeUnits(scale=sign, lower_knee=knee, width=width)
    return OutcomeUnits(scale=sign, upper_knee=knee, width=width)


def bend_around(z: Float[Tensor, " n"], bounds: Sequence[float]) -> OutcomeUnits:
    """Bend on both sides of the bounds, where outcomes on one side go farther than those on the other.

    A limit of a power of inputs is kept by a little and broken by orders of magnitude, or the other way round: the
    width is what the nearer side reaches. The map is odd about a single bound, so that symmetric noise does not change
    what keeps it.

    Args:
        z: Outcomes of a constraint.
        bounds: One or two.
    """
    low, high = min(bounds), max(bounds)
    # How far outcomes are beyond the bounds, or from them on the other side.
    excess = torch.maximum(z - high, low - z) if low < high else z - high
    reach = [float(side.max().clamp_min(0.0)) for side in (excess, -excess)]
    width = min(reach) or float(excess.abs().quantile(_NEAR))
    if not 0.0 < 2.0 * width < max(reach):
        return OutcomeUnits()
    return OutcomeUnits(lower_knee=low - width, upper_knee=high + width, width=width)
