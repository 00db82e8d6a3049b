"""Rules that draw: Thompson sampling, with look-ahead or without, and points at random."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from botorch.utils.sampling import manual_seed
from torch import Tensor

from streamgp.acquisition.abstract_rule import AbstractDrawingRule, AbstractRule
from streamgp.acquisition.context import Context
from streamgp.acquisition.lookahead_thompson import lookahead_thompson_sampling
from streamgp.acquisition.space import CandidateSource
from streamgp.acquisition.thompson import thompson_sampling
from streamgp.checks import keep_count
from streamgp.errors import UnsupportedError
from streamgp.seeds import derived_seed, seeded
from streamgp.storage import register

__all__ = ["LookaheadThompson", "Random", "Thompson"]


@register
@final
@dataclass(frozen=True)
class Thompson(AbstractDrawingRule):
    """The best candidates of functions drawn from the model.

    Attributes:
        num_candidates: Points among which each function chooses; None for 1000, or what a trust region takes.
    """

    num_candidates: int | None = None
    knows_constraints: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the number."""
        if self.num_candidates is not None:
            keep_count(self, "num_candidates", minimum=2)

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """The most wanted candidate of each of q functions drawn jointly, none twice."""
        points = context.candidates(self.num_candidates or 1000, seeded(seed, 3))
        with torch.no_grad(), manual_seed(derived_seed(seed, 200)):
            samples = context.model.posterior(context.space.inputs(points)).rsample(torch.Size([q]))
        chosen: list[int] = []
        for sample in samples:
            score, violation = context.objective.score(sample), context.objective.violation(sample)
            score[chosen], violation[chosen] = -torch.inf, torch.inf
            # Where no candidate is feasible, the one that comes nearest.
            is_good = violation == 0
            masked = score.masked_fill(~is_good, -torch.inf)
            chosen.append(int(masked.argmax() if is_good.any() else violation.argmin()))
        return points[chosen]

    def draw(
        self, context: Context, candidates: CandidateSource, q: int, *, num_candidates: int, generator: torch.Generator
    ) -> Tensor:
        """Choose among candidates that are drawn elsewhere, by functions of which there may be many."""
        return thompson_sampling(
            context.model,
            candidates,
            q=q,
            num_candidates=max(self.num_candidates or num_candidates, q),
            maximize=context.objective.weights[0] > 0,
            generator=generator,
        )


@register
@final
@dataclass(frozen=True)
class LookaheadThompson(AbstractDrawingRule):
    """Thompson sampling from a model that has looked ahead.

    Attributes:
        num_candidates: As in `Thompson`.
        depth: Depth of the look-ahead.
        num_paths: Number of its paths.
    """

    num_candidates: int | None = None
    depth: int = 4
    num_paths: int = 10

    def __post_init__(self) -> None:
        """Check the numbers."""
        Thompson(self.num_candidates)
        keep_count(self, "depth")
        keep_count(self, "num_paths")

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Follow functions to their best candidates, and draw given what they saw."""
        if not context.space.is_continuous:
            raise UnsupportedError("LookaheadThompson needs a continuous space. Use Thompson in others.")
        generator, centers = seeded(seed, 4), context.centers()

        def candidates(num: int) -> Tensor:
            return context.space.candidates(num, centers=centers, generator=generator)

        return self.draw(context, candidates, q, num_candidates=1000, generator=generator)

    def draw(
        self, context: Context, candidates: CandidateSource, q: int, *, num_candidates: int, generator: torch.Generator
    ) -> Tensor:
        """Choose among candidates that are drawn elsewhere."""
        return lookahead_thompson_sampling(
            context.model,
            candidates,
            q=q,
            depth=self.depth,
            num_paths=self.num_paths,
            num_candidates=max(self.num_candidates or num_candidates, q),
            maximize=context.objective.weights[0] > 0,
            generator=generator,
        )


@register
@final
@dataclass(frozen=True)
class Random(AbstractRule):
    """Points of the initial design's sequence, or members of a pool at random; no model is needed."""

    knows_constraints: ClassVar[bool] = True
    knows_objectives: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Random candidates, where there is a model in spite of all."""
        points = context.candidates(max(1000, q), seeded(seed, 3))
        return points[torch.randperm(len(points), generator=seeded(seed, 5))[:q]]
