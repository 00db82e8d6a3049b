"""Points in the space of hyperparameters, in a form that can be sent to shards."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import final

from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.parameters import Hyperparameters, Space, hyperparameter_space
from streamgp.training.scaling import Scaling

__all__ = ["Layout", "ParameterPoint"]


@final
@dataclass(frozen=True, eq=False)
class Layout:
    """Space of what is learned, in a form that can be pickled: the space itself holds functions.

    Attributes:
        base: Where it starts, and what does not change.
        learn_inducing: Whether inducing points are learned.
        extra: Bounds of extra tensors.
        likelihood_bounds: Bounds of the likelihood's values.
        likelihood: What checks the targets; None for Gaussian ones.
        scaling: Units of training.
        target_unit: The spread of the targets in these.
    """

    base: Hyperparameters
    learn_inducing: bool
    extra: Mapping[str, tuple[float, float]]
    likelihood_bounds: Mapping[str, tuple[float, float]]
    likelihood: AbstractLikelihood | None
    scaling: Scaling | None
    target_unit: float = 1.0

    def space(self) -> Space:
        """The space of what is learned."""
        return hyperparameter_space(
            self.base,
            learn_inducing=self.learn_inducing,
            extra=self.extra,
            likelihood_bounds=self.likelihood_bounds,
            target_unit=self.target_unit,
        )


@final
@dataclass(frozen=True, eq=False)
class ParameterPoint:
    """A point of the space."""

    layout: Layout
    x: Float[Tensor, " k"]

    @cached_property
    def space(self) -> Space:
        """The space, made where it is needed."""
        return self.layout.space()

    @cached_property
    def setting(self) -> Hyperparameters:
        """Hyperparameters and inducing points, without gradient."""
        return self.space.setting(self.x)

    def __getstate__(self) -> dict[str, object]:
        """State that is sent, without what can be made again."""
        return {"layout": self.layout, "x": self.x.detach()}
