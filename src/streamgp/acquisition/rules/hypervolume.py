"""The rule for several objectives: the expected growth of the volume that the Pareto set dominates."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.pareto import is_non_dominated
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition.abstract_rule import AbstractFunctionRule
from streamgp.acquisition.context import Context
from streamgp.acquisition.noisy_hypervolume import NoisyHypervolume
from streamgp.errors import UnsupportedError
from streamgp.models import OnlineGP
from streamgp.seeds import derived_seed, seeded
from streamgp.storage import register

__all__ = ["HypervolumeKnowledgeGradient", "NoisyHypervolumeImprovement", "dominated_area", "find_reference_point"]

# Further points that may be recommended, beside the known ones.
_NUM_RECOMMENDED = 64
# How far the reference point is below the worst values of the Pareto set, in ranges of the set: at least, and at most.
_NEAREST, _FARTHEST = 0.1, 1.0
# A set whose range is a smaller share of that of all known points is taken for a single one.
_SINGLE = 1e-3


def find_reference_point(scores: Float[Tensor, "n o"], floors: tuple[float, ...] = ()) -> Float[Tensor, " o"]:
    """The worst values that are known, not too near to the Pareto set and not too far from it.

    From a point near the set, its ends would enclose next to no volume, and would not be looked for. Where the set has
    no range, as a single point has none, that of all known points counts: from the point itself, nothing would be worth
    anything.

    Args:
        scores: Of known points, to be maximized.
        floors: Scores that are just not acceptable, which take its place where they are finite.
    """
    front = scores[is_non_dominated(scores)]
    worst, of_all = front.amin(0), scores.amin(0)
    width, whole = front.amax(0) - worst, scores.amax(0) - of_all
    width = torch.where(width > _SINGLE * whole, width, whole)
    width = torch.where(width > 0.0, width, 1.0)
    found = torch.minimum(worst - _NEAREST * width, torch.maximum(worst - _FARTHEST * width, of_all))
    given = found.new_tensor(floors) if floors else found
    return torch.where(given.isfinite(), given, found)


@register
@final
@dataclass(frozen=True)
class HypervolumeKnowledgeGradient(AbstractFunctionRule):
    """The expected growth of the area that posterior means dominate, wherever the best trade-offs may then be.

    Unlike hypervolume improvement it values what an evaluation says of other points, and so plans for a recommendation
    of the model. Trade-offs are recommended among a finite set: known points, candidates, and the evaluated points.

    Attributes:
        num_fantasies: Outcomes that are imagined of each set of points.
    """

    num_fantasies: int = 16
    knows_objectives: ClassVar[bool] = True

    def function(self, context: Context, *, seed: int) -> Any:
        """Of inputs `(*b, q, d)`."""
        if context.objective.num_objectives != 2:
            raise UnsupportedError(
                "HypervolumeKnowledgeGradient weighs two objectives against each other, but there are "
                f"{context.objective.num_objectives}. Use acquisition='qnehvi'."
            )
        drawn = context.space.inputs(context.candidates(_NUM_RECOMMENDED, seeded(seed, 302)))
        return _ExpectedArea(context, torch.cat([context.baseline, drawn]), self.num_fantasies, seed)


@final
class _ExpectedArea(AcquisitionFunction):
    """The expected dominated area after outcomes that are drawn from the model, less today's."""

    def __init__(self, context: Context, W: Float[Tensor, "w d"], num_fantasies: int, seed: int) -> None:
        assert isinstance(context.model, OnlineGP)
        super().__init__(model=context.model)
        self.gp, self.objective, self.W = context.model, context.objective, W
        self.sampler = SobolQMCNormalSampler(torch.Size([num_fantasies]), seed=derived_seed(seed, 0))
        with torch.no_grad():
            known, now = (self._scores(context.model, points) for points in (context.baseline, W))
            self.reference = find_reference_point(known, context.objective.floors)
            self.area = dominated_area(now, self.reference)
        self.set_X_pending(context.pending_or_none)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802 # as BoTorch calls it
        pending: Any = X_pending
        self.X_pending = pending

    def forward(self, X: Tensor) -> Tensor:
        pending = self.W[:0] if self.X_pending is None else self.X_pending
        observed = torch.cat([X, pending.expand(*X.shape[:-2], *pending.shape)], dim=-2)
        fantasies = self.gp.fantasize(observed, self.sampler)
        choices = torch.cat([self.W.expand(*X.shape[:-2], *self.W.shape), X], dim=-2)
        area = dominated_area(self._scores(fantasies, choices), self.reference)
        return area.mean(0) - self.area

    def _scores(self, model: OnlineGP, points: Tensor) -> Tensor:
        posterior: Any = model.posterior(points)
        return self.objective.scores(posterior.mean)


def dominated_area(scores: Float[Tensor, "*s w 2"], reference: Float[Tensor, " 2"]) -> Float[Tensor, "*s"]:
    """The area between a reference point and the points above it, of two objectives to be maximized.

    Strips between neighboring values of the first objective are as high as the best second objective of all points
    that reach them. Differentiable but where two points change places.

    Args:
        scores: Any points; those that are dominated, or not above the reference point, add nothing.
        reference: From where areas are measured.
    """
    gains = (scores - reference).clamp_min(0.0)
    order = gains[..., 0].argsort(-1, descending=True)
    first, second = (gains[..., j].gather(-1, order) for j in range(2))
    width = first - torch.cat([first[..., 1:], torch.zeros_like(first[..., :1])], dim=-1)
    return (width * second.cummax(-1).values).sum(-1)


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
        """Make the function that BoTorch's `qLogNoisyExpectedHypervolumeImprovement` samples."""
        with torch.no_grad():
            posterior: Any = context.model.posterior(context.baseline)
            scores = context.objective.scores(posterior.mean)
        reference = find_reference_point(scores, context.objective.floors)
        return NoisyHypervolume(context, reference, num_samples=self.num_samples, seed=seed)
