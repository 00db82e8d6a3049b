"""The rule for several objectives: the expected growth of the volume that the Pareto set dominates."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor

from streamgp.acquisition.abstract_rule import AbstractFunctionRule
from streamgp.acquisition.context import Context
from streamgp.seeds import derived_seed
from streamgp.storage import register

__all__ = ["NoisyHypervolumeImprovement"]


@register
@final
@dataclass(frozen=True)
class NoisyHypervolumeImprovement(AbstractFunctionRule):
    """The expected improvement of the hypervolume over all known points, whose values are uncertain; in logarithms.

    The reference point is a tenth of the Pareto set's range below its worst values, by posterior means.

    Attributes:
        num_samples: Monte Carlo samples.
    """

    num_samples: int = 64
    knows_constraints: ClassVar[bool] = True
    knows_objectives: ClassVar[bool] = True

    def function(self, context: Context, *, seed: int) -> Any:
        """`qLogNoisyExpectedHypervolumeImprovement`."""
        objective = context.objective
        with torch.no_grad():
            posterior: Any = context.model.posterior(context.baseline)
            scores = objective.scores(posterior.mean)

        def scores_of(samples: Tensor, X: Tensor | None = None) -> Tensor:
            return objective.scores(samples)

        reference = infer_reference_point(scores[is_non_dominated(scores)], scale=0.1)
        return qLogNoisyExpectedHypervolumeImprovement(
            context.model,
            reference,
            context.baseline,
            sampler=SobolQMCNormalSampler(torch.Size([self.num_samples]), seed=derived_seed(seed, 0)),
            objective=GenericMCMultiOutputObjective(scores_of),
            constraints=objective.constraints,
            X_pending=context.pending_or_none,
            prune_baseline=True,
        )
