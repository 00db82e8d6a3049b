"""Untried points that differ from the best one in one discrete parameter."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.acquisition import Context
from streamgp.loops.parameter_space import ParameterSpace
from streamgp.loops.parameters import Categorical

__all__ = ["untried_neighbor"]

# Numbers of at most so many values are asked about one by one; of others a model sees the slope.
_FEW_VALUES = 8
# A point counts as tried if another has the same few-valued parameters, and all others within this part of their range.
_NEAR = 0.15
# Values of a parameter that differ by less are the same but for rounding.
_SAME = 1e-9
# How much worse than the best a neighbor may be expected to be, in standard deviations of what is known.
_WORSE = 0.5


@torch.no_grad()
def untried_neighbor(context: Context, space: ParameterSpace, taken: Float[Tensor, "n d"]) -> Tensor | None:
    """The most promising point that differs from the best known one in one category or number of few values.

    A model takes a number of few values for a smooth coordinate: where two of four were tried, it may be sure of the
    others, and wrong. It then never asks. To look next door costs few evaluations, as each neighbor is tried once.

    Args:
        context: Of the model; its baseline are the points of which outcomes are known.
        space: The space.
        taken: Points that were evaluated, or will be.

    Returns:
        The point, `(1, d)`; None where all that are promising were tried, or parameters are fixed.
    """
    is_few = _few_valued(space)
    if space.fixed or not bool(is_few.any()):
        return None
    values = context.objective.value(context.model.posterior(context.baseline))
    best = context.baseline[values.argmax()]
    neighbors = _neighbors(space, best)
    gap = (neighbors.unsqueeze(1) - space.inputs(taken)).abs()
    is_tried = ((gap[..., is_few] < _SAME).all(-1) & (gap[..., ~is_few] <= _NEAR).all(-1)).any(-1)
    neighbors = neighbors[~is_tried & space.is_allowed(neighbors)]
    if not len(neighbors):
        return None
    promise = context.objective.value(context.model.posterior(space.inputs(neighbors)))
    spread = values.std() if len(values) > 1 else values.new_tensor(1.0)  # one value has none: the unit of the model
    is_promising = bool(promise.max() >= values.max() - _WORSE * spread)
    return neighbors[promise.argmax()].unsqueeze(0) if is_promising else None


def _few_valued(space: ParameterSpace) -> Bool[Tensor, " d"]:
    """Which columns are those of categories, or of numbers of few values."""
    is_few = torch.zeros(space.num_dims, dtype=torch.bool)
    for name, part in space.parts.items():
        one = space.parameters[name]
        is_few[part] = isinstance(one, Categorical) or (one.num_values or _FEW_VALUES + 1) <= _FEW_VALUES
    return is_few


def _neighbors(space: ParameterSpace, point: Float[Tensor, " d"]) -> Float[Tensor, "k d"]:
    """Points that differ in one of these parameters."""
    is_few, found = _few_valued(space), []
    for name, part in space.parts.items():
        if bool(is_few[part].all()):
            others = space.parameters[name].alternatives(point[part])
            changed = point.repeat(len(others), 1)
            changed[:, part] = others
            found.append(changed)
    return torch.cat(found)
