"""Thompson sampling in a trust region, which the rule remembers."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

import torch
from botorch.models.model import Model
from jaxtyping import Bool, Float, Int
from torch import Tensor

from streamgp.acquisition.abstract_rule import AbstractDrawingRule, AbstractRule
from streamgp.acquisition.context import Context
from streamgp.acquisition.rules.sampling import Thompson
from streamgp.acquisition.trust_region import Region, RegionRules, draw_in_region, update_region
from streamgp.errors import UnsupportedError
from streamgp.models import OnlineGP
from streamgp.seeds import seeded
from streamgp.storage import register

__all__ = ["RegionMemory", "TrustRegion"]

# Candidates for each dimension, and the least and most of them.
_NUM_CANDIDATES, _LEAST_CANDIDATES, _MOST_CANDIDATES = 200, 2000, 5000


@register
@final
@dataclass(frozen=True, eq=False)
class RegionMemory:
    """Memory of a search in trust regions.

    Attributes:
        region: That of the current run.
        num_runs: Number of runs begun.
        runs: To which run each evaluation belongs; a run ends where its region is given up.
        lengths: Length of the region after each evaluation.
    """

    region: Region
    num_runs: int = 1
    runs: Int[Tensor, " n"] = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    lengths: Float[Tensor, " n"] = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))


@register
@final
@dataclass(frozen=True)
class TrustRegion(AbstractRule):
    """Choose in a box around the best point, which grows with success and shrinks with failure.

    When it has become too small, a new run begins elsewhere, with an initial design of its own and without the data of
    earlier runs.

    Attributes:
        rule: How points in the box are chosen.
        region: How the box changes.

    References:
        Eriksson, Pearce, Gardner, Turner, Poloczek (2019), Scalable global optimization via local Bayesian
        optimization.
    """

    rule: AbstractDrawingRule = field(default_factory=Thompson)
    region: RegionRules = field(default_factory=RegionRules)
    may_repeat: ClassVar[bool] = True

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Draw candidates in the region, and choose among them."""
        if not context.space.is_continuous:
            raise UnsupportedError("A trust region needs a continuous space. Use streamgp.Optimizer for others.")
        generator, d = seeded(seed, 3), context.space.num_dims
        memory: RegionMemory = context.memory
        center, lengthscale = context.baseline[context.observed.argmax()], _lengthscale(context.model)

        def candidates(num: int) -> Tensor:
            return draw_in_region(
                num, center, length=memory.region.length, lengthscale=lengthscale, generator=generator
            )

        num = min(_MOST_CANDIDATES, max(_LEAST_CANDIDATES, _NUM_CANDIDATES * d))
        return self.rule.draw(context, candidates, q, num_candidates=num, generator=generator)

    def start(self) -> RegionMemory:
        """The first run, before any data."""
        return RegionMemory(self.region.start())

    def remember(self, memory: RegionMemory, values: Tensor, *, is_initial: bool, num_dims: int) -> RegionMemory:
        """One step of the region; the initial design counts for its best value only."""
        if is_initial:
            found = torch.cat([values[~values.isnan()], values.new_tensor([memory.region.best])])
            region, is_exhausted = replace(memory.region, best=float(found.max())), False
        else:
            region, info = update_region(memory.region, values, num_dims=num_dims, rules=self.region)
            is_exhausted = info.is_exhausted
        after = RegionMemory(
            region=region,
            num_runs=memory.num_runs,
            runs=torch.cat([memory.runs, torch.full((len(values),), memory.num_runs - 1)]),
            lengths=torch.cat([memory.lengths, values.new_full((len(values),), region.length)]),
        )
        return replace(after, region=self.region.start(), num_runs=memory.num_runs + 1) if is_exhausted else after

    def run(self, memory: RegionMemory) -> int:
        """Number of times that the search began anew."""
        return memory.num_runs - 1

    def in_run(self, memory: RegionMemory, num_told: int) -> Bool[Tensor, " n"]:
        """The evaluations of the current run."""
        return memory.runs == memory.num_runs - 1


def _lengthscale(model: Model) -> Float[Tensor, " d"]:
    """Of each dimension, for a scaled kernel or a plain one."""
    kernel: Any = model.gps[0].kernel if isinstance(model, OnlineGP) else model.covar_module  # type: ignore[union-attr]
    while not kernel.has_lengthscale:
        kernel = kernel.base_kernel
    return kernel.lengthscale.detach().reshape(-1)
