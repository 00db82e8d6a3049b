"""The rule for several objectives: the expected growth of the volume that the Pareto set dominates."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch

from streamgp.acquisition.abstract_rule import AbstractFunctionRule
from streamgp.acquisition.context import Context
from streamgp.acquisition.noisy_hypervolume import NoisyHypervolume
from streamgp.acquisition.reference_point import find_reference_point
from streamgp.storage import register

__all__ = ["NoisyHypervolumeImprovement"]


@register
@final
@dataclass(frozen=True)
class NoisyHypervolumeImprovement(AbstractFunctionRule):
    """The expected improvement of the hypervolume over all known points, whose values are uncertain; in logarithms.

    The reference point has the worst values that are known, by posterior means, but is at least a tenth of the Pareto
    set's range below the set, and at most the whole range.

    Attributes:
        num_samples: Samples of the values of known points; given these, it is in closed form.
    """

    num_samples: int = 32
    knows_constraints: ClassVar[bool] = True
    knows_objectives: ClassVar[bool] = True

    def function(self, context: Context, *, seed: int) -> Any:
        """What BoTorch's `qLogNoisyExpectedHypervolumeImprovement` samples."""
        with torch.no_grad():
            posterior: Any = context.model.posterior(context.baseline)
            scores = context.objective.scores(posterior.mean)
        return NoisyHypervolume(context, find_reference_point(scores), num_samples=self.num_samples, seed=seed)
