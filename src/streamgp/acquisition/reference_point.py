"""From where the volume that a Pareto set dominates is measured."""

import torch
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from botorch.utils.multi_objective.pareto import is_non_dominated
from jaxtyping import Float
from torch import Tensor

__all__ = ["find_reference_point"]

# How far the reference point is below the worst values of the Pareto set, in ranges of the set: at least, and at most.
_NEAREST, _FARTHEST = 0.1, 1.0


def find_reference_point(scores: Float[Tensor, "n o"]) -> Float[Tensor, " o"]:
    """The worst values that are known, not too near to the Pareto set and not too far from it.

    From a point near the set, its ends would enclose next to no volume, and would not be looked for.

    Args:
        scores: Of known points, to be maximised.
    """
    front = scores[is_non_dominated(scores)]
    nearest, farthest = (infer_reference_point(front, scale=scale) for scale in (_NEAREST, _FARTHEST))
    return torch.minimum(nearest, torch.maximum(farthest, scores.amin(0)))
