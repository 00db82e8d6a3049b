"""Rules of expected improvement and its relatives."""

from dataclasses import dataclass, replace
from typing import Any, final

import torch
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.acquisition.max_value_entropy_search import qLowerBoundMaxValueEntropy
from botorch.acquisition.monte_carlo import qSimpleRegret, qUpperConfidenceBound
from botorch.acquisition.objective import GenericMCObjective
from botorch.sampling.normal import SobolQMCNormalSampler
from torch import Tensor

from streamgp.acquisition.abstract_rule import AbstractFunctionRule
from streamgp.acquisition.context import Context
from streamgp.acquisition.noisy_improvement import NoisyImprovement
from streamgp.seeds import derived_seed, seeded
from streamgp.storage import register

__all__ = [
    "ExpectedImprovement",
    "ExpectedUtilityOfBest",
    "Gibbon",
    "NoisyExpectedImprovement",
    "UpperConfidenceBound",
]


@register
@final
@dataclass(frozen=True)
class NoisyExpectedImprovement(AbstractFunctionRule):
    """The expected improvement over the best of all known points, whose values are uncertain too; in logarithms.

    Attributes:
        num_samples: Samples of the values of known points; given these, it is in closed form.
    """

    num_samples: int = 64
    knows_constraints = True

    def function(self, context: Context, *, seed: int) -> Any:
        """Make the function that BoTorch's `qLogNoisyExpectedImprovement` samples."""
        return NoisyImprovement(context, num_samples=self.num_samples, seed=seed)


@register
@final
@dataclass(frozen=True)
class ExpectedImprovement(AbstractFunctionRule):
    """The expected improvement over the best mean of a known point; in logarithms.

    Attributes:
        num_samples: Monte Carlo samples.
    """

    num_samples: int = 128
    knows_constraints = True

    def function(self, context: Context, *, seed: int) -> Any:
        """`qLogExpectedImprovement`."""
        return qLogExpectedImprovement(
            context.model,
            context.best_known(),
            constraints=context.objective.constraints,
            **_sampled(context, self, seed),
        )


@register
@final
@dataclass(frozen=True)
class UpperConfidenceBound(AbstractFunctionRule):
    r"""The mean plus $\sqrt\beta$ standard deviations.

    Attributes:
        beta: Weight of the variance.
        num_samples: Monte Carlo samples.
    """

    beta: float = 4.0
    num_samples: int = 128

    def function(self, context: Context, *, seed: int) -> Any:
        """`qUpperConfidenceBound`."""
        return qUpperConfidenceBound(context.model, self.beta, **_sampled(context, self, seed))


@register
@final
@dataclass(frozen=True)
class Gibbon(AbstractFunctionRule):
    """Information about the maximum, by a lower bound.

    Attributes:
        num_max_values: Samples of the maximum.
        num_candidates: Points among which it is sampled.
    """

    num_max_values: int = 16
    num_candidates: int = 1000

    def function(self, context: Context, *, seed: int) -> Any:
        """`qLowerBoundMaxValueEntropy`."""
        candidates = context.candidates(self.num_candidates, seeded(seed, 1))
        return qLowerBoundMaxValueEntropy(
            context.model,
            context.space.inputs(candidates),
            num_mv_samples=self.num_max_values,
            maximize=context.objective.weights[0] > 0,
            X_pending=context.pending_or_none,
        )


@register
@final
@dataclass(frozen=True)
class ExpectedUtilityOfBest(AbstractFunctionRule):
    """The expected utility of the best of the points that are compared (qEUBO).

    What a comparison without noise is worth by knowledge gradient. A single point is compared with the best known one.
    Of several, the first is that of the largest mean anywhere, and the others are those that may be better.

    Attributes:
        num_samples: Monte Carlo samples.
        has_rival: Whether the best known point is compared, too.

    References:
        Astudillo, Lin, Bakshy, Frazier (2023), qEUBO: a decision-theoretic acquisition function for preferential
        Bayesian optimization.
    """

    num_samples: int = 128
    has_rival: bool = False

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Maximize it; the best known point is compared with a single one in any case."""
        if q == 1 and not self.has_rival:
            return replace(self, has_rival=True).propose(context, q, seed=seed)
        return super().propose(context, q, seed=seed)

    def function(self, context: Context, *, seed: int) -> Any:
        """`qSimpleRegret`, where the best known point may be among the pending ones."""
        options = _sampled(context, self, seed)
        if self.has_rival:
            options["X_pending"] = torch.cat([context.pending, context.centers()[:1]])
        return qSimpleRegret(context.model, **options)


def _sampled(context: Context, rule: Any, seed: int) -> dict[str, Any]:
    """Return arguments that all sampling functions have in common."""
    return {
        "sampler": SobolQMCNormalSampler(torch.Size([rule.num_samples]), seed=derived_seed(seed, 0)),
        "objective": GenericMCObjective(context.objective.score),
        "X_pending": context.pending_or_none,
    }
