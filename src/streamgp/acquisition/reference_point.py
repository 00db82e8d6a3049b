"""From where the volume that a Pareto set dominates is measured."""

import torch
from botorch.utils.multi_objective.pareto import is_non_dominated
from jaxtyping import Float
from torch import Tensor

__all__ = ["find_reference_point"]

# How far the reference point is below the worst values of the Pareto set, in ranges of the set: at least, and at most.
_NEAREST, _FARTHEST = 0.1, 1.0
# A set whose range is a smaller share of that of all known points is taken for a single one.
_SINGLE = 1e-3


def find_reference_point(scores: Float[Tensor, "n o"]) -> Float[Tensor, " o"]:
    """The worst values that are known, not too near to the Pareto set and not too far from it.

    From a point near the set, its ends would enclose next to no volume, and would not be looked for. Where the set has
    no range, as a single point has none, that of all known points counts: from the point itself, nothing would be worth
    anything.

    Args:
        scores: Of known points, to be maximized.
    """
    front = scores[is_non_dominated(scores)]
    worst, of_all = front.amin(0), scores.amin(0)
    width, whole = front.amax(0) - worst, scores.amax(0) - of_all
    width = torch.where(width > _SINGLE * whole, width, whole)
    width = torch.where(width > 0.0, width, 1.0)
    return torch.minimum(worst - _NEAREST * width, torch.maximum(worst - _FARTHEST * width, of_all))
