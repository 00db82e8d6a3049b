"""Rules that wrap a rule: now and then they choose a point that a model which is wrong would never ask for."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.acquisition import AbstractRule, Choice, Context
from streamgp.errors import ArgumentTypeError, UnsupportedError
from streamgp.loops.parameter_space import ParameterSpace
from streamgp.loops.parameters import Categorical
from streamgp.seeds import derived_seed
from streamgp.storage import register

__all__ = ["AbstractPolicy", "NeighborOfBest", "RepeatBest", "SpaceFilling", "with_policies"]

# Of several objectives, the farthest of this many points is taken.
_NUM_SCATTERED = 256
# Numbers of at most this many values are tried one by one; of others a model sees the slope.
_FEW_VALUES = 8
# A point counts as tried if another has the same few-valued parameters, and all others within this part of their range.
_NEAR = 0.15
# Values of a parameter that differ by less are the same but for rounding.
_SAME = 1e-9
# Standard deviations of the known values by which a neighbor may be expected to be worse than the best point.
_WORSE = 0.5


class AbstractPolicy(AbstractRule):
    """A rule that chooses some points by itself, and leaves the others to the rule that it wraps.

    Attributes:
        rule: The other rule; one that remembers nothing, such as a trust region does.
    """

    rule: AbstractRule

    def __post_init__(self) -> None:
        """Check the rule."""
        if not isinstance(self.rule, AbstractRule):
            raise ArgumentTypeError(
                f"{type(self).__name__} wraps a rule, but got a {type(self.rule).__name__}. Write "
                f"{type(self).__name__}(NoisyExpectedImprovement())."
            )
        if self.rule.start() is not None:
            raise UnsupportedError(
                f"{type(self).__name__} wraps rules that remember nothing, but {type(self.rule).__name__} does. Use "
                "it as it is."
            )

    @property
    def innermost(self) -> AbstractRule:
        """The rule that chooses all points but those of policies."""
        return self.rule.innermost

    def extends_design(self, *, are_alike: bool) -> bool:
        """As the other rule does."""
        return self.rule.extends_design(are_alike=are_alike)

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Choose points of the space."""
        return self.choose(context, q, seed=seed).points

    @abstractmethod
    def choose(self, context: Context, q: int, *, seed: int) -> Choice:
        """Choose points of the space, and say why."""


@register
@final
@dataclass(frozen=True)
class SpaceFilling(AbstractPolicy):
    """Fill the space where a model has learned nothing, or would never look.

    The initial design goes on while all outcomes are alike: of these a model learns that nothing matters, and would go
    from corner to corner, where it is least sure. With several objectives, there is always more to gain along a front
    that is known, so that a model that is wrong about the rest of the space would not be asked about it again: one
    point of several is the one of a design that is farthest from all others.

    Attributes:
        rule: Chooses the other points.
        every: With several objectives, one of this many points is far from all others; 0 for none.
    """

    rule: AbstractRule
    every: int = 8

    def extends_design(self, *, are_alike: bool) -> bool:
        """Go on while all outcomes are alike."""
        return are_alike

    def choose(self, context: Context, q: int, *, seed: int) -> Choice:
        """Choose the farthest point if it is due, and leave the others to the rule."""
        is_due = context.objective.num_objectives > 1 and self.every > 0
        if context.pool is not None or not is_due or context.num_chosen % self.every + q < self.every:
            return self.rule.choose(context, q, seed=seed)
        space = context.space
        drawn = space.design(_NUM_SCATTERED, num_initial=0, num_before=0, seed=derived_seed(seed, 2))
        distance = torch.cdist(space.inputs(drawn), space.inputs(context.taken)).amin(-1)
        if not bool(distance.any()):
            return self.rule.choose(context, q, seed=seed)
        farthest = Choice(drawn[distance.argmax()].unsqueeze(0), ("farthest from all others",))
        return farthest if q == 1 else self.rule.choose(context, q - 1, seed=seed).join(farthest)


@register
@final
@dataclass(frozen=True)
class NeighborOfBest(AbstractPolicy):
    """Try neighbors of the best point: points that differ from it in one category, or one number of few values.

    A model takes a number of few values for a smooth coordinate: where two of four were tried, it may be sure of the
    others, and wrong. It then never asks. To look next door costs few evaluations, as each neighbor is tried once.

    Attributes:
        rule: Chooses the other points.
        every: One of this many points may be a neighbor.
    """

    rule: AbstractRule
    every: int = 3

    def choose(self, context: Context, q: int, *, seed: int) -> Choice:
        """Choose the most promising neighbor if one is due, and leave the others to the rule."""
        is_due = context.num_chosen % self.every + q >= self.every
        found = untried_neighbor(context) if is_due else None
        if found is None:
            return self.rule.choose(context, q, seed=seed)
        neighbor = Choice(found, ("untried neighbor of the best point",))
        return neighbor if q == 1 else self.rule.choose(context, q - 1, seed=seed).join(neighbor)


@register
@final
@dataclass(frozen=True)
class RepeatBest(AbstractPolicy):
    """Evaluate the best point again, once, where the model sees noise or ripples.

    A function that is rugged looks like noise to a model, which then searches and recommends where it is not; and noise
    looks like ripples. To evaluate one point again tells which it is: outcomes that are repeated to the last digit have
    no noise.

    Attributes:
        rule: Chooses the other points.
    """

    rule: AbstractRule

    def choose(self, context: Context, q: int, *, seed: int) -> Choice:
        """Choose the point that is in doubt first, and leave the others to the rule."""
        if context.doubted is None:
            return self.rule.choose(context, q, seed=seed)
        again = Choice(context.doubted, ("repeated, to tell noise from ripples",), num_repeated=1)
        return again if q == 1 else again.join(self.rule.choose(context, q - 1, seed=seed))


def with_policies(rule: AbstractRule, *, num_objectives: int) -> AbstractRule:
    """Wrap a rule as an optimizer does by default; rules that are wrapped already, or remember, stay as they are.

    Args:
        rule: What chooses most points.
        num_objectives: Number of objectives; of several, no single point is the best one.
    """
    if isinstance(rule, AbstractPolicy) or rule.start() is not None:
        return rule
    filling = SpaceFilling(rule)
    return filling if num_objectives > 1 else RepeatBest(NeighborOfBest(filling))


@torch.no_grad()
def untried_neighbor(context: Context) -> Float[Tensor, "1 d"] | None:
    """Find the most promising point that differs from the best known one in one category or number of few values.

    Args:
        context: Of the model; its baseline are the points of which outcomes are known.

    Returns:
        The point; None where all that are promising were tried, parameters are fixed, or all are real numbers.
    """
    space = context.space
    if not isinstance(space, ParameterSpace) or space.fixed:
        return None
    is_few = _few_valued(space)
    if not bool(is_few.any()):
        return None
    values = context.objective.value(context.model.posterior(context.baseline))
    neighbors = _neighbors(space, context.baseline[values.argmax()], is_few)
    gap = (neighbors.unsqueeze(1) - space.inputs(context.taken)).abs()
    is_tried = ((gap[..., is_few] < _SAME).all(-1) & (gap[..., ~is_few] <= _NEAR).all(-1)).any(-1)
    neighbors = neighbors[~is_tried & space.is_allowed(neighbors)]
    if not len(neighbors):
        return None
    promise = context.objective.value(context.model.posterior(space.inputs(neighbors)))
    spread = values.std() if len(values) > 1 else values.new_tensor(1.0)  # one value has none: the unit of the model
    is_promising = bool(promise.max() >= values.max() - _WORSE * spread)
    return neighbors[promise.argmax()].unsqueeze(0) if is_promising else None


def _few_valued(space: ParameterSpace) -> Bool[Tensor, " d"]:
    """Columns of categories, and of numbers of few values."""
    is_few = torch.zeros(space.num_dims, dtype=torch.bool)
    for name, part in space.parts.items():
        one = space.parameters[name]
        is_few[part] = isinstance(one, Categorical) or (one.num_values or _FEW_VALUES + 1) <= _FEW_VALUES
    return is_few


def _neighbors(space: ParameterSpace, point: Float[Tensor, " d"], is_few: Bool[Tensor, " d"]) -> Float[Tensor, "k d"]:
    """Points that differ in one of the few-valued parameters."""
    found = []
    for name, part in space.parts.items():
        if bool(is_few[part].all()):
            others = space.parameters[name].alternatives(point[part])
            changed = point.repeat(len(others), 1)
            changed[:, part] = others
            found.append(changed)
    return torch.cat(found)
