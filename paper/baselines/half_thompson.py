"""Batches of which one half is drawn and the other looks for the maximum, given the first."""

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from streamgp.acquisition import AbstractRule, Gibbon, Thompson
from streamgp.acquisition.context import Context
from streamgp.acquisition.trust_region import draw_in_region
from streamgp.seeds import derived_seed, seeded

__all__ = ["HalfThompson"]

# A box of this side around any point holds the unit cube.
_WHOLE = 2.0


@final
@dataclass(frozen=True)
class HalfThompson(AbstractRule):
    """Thompson sampling for the first half of a batch; qGIBBON for the other, with the first half pending.

    Candidates of Thompson sampling are in the whole cube, and share most coordinates with the best point, as in TuRBO.

    Attributes:
        num_candidates: Of Thompson sampling.
        num_max_candidates: Points among which the maximum is sampled.
    """

    num_candidates: int
    num_max_candidates: int

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Choose the halves, the first one larger if they cannot be equal."""
        generator = seeded(seed, 3)
        center = context.baseline[context.observed.argmax()]

        def candidates(num: int) -> Tensor:
            return draw_in_region(num, center, length=_WHOLE, lengthscale=torch.ones_like(center), generator=generator)

        num_first = (q + 1) // 2
        first = Thompson(self.num_candidates).draw(
            context, candidates, num_first, num_candidates=self.num_candidates, generator=generator
        )
        if q == num_first:
            return first
        waiting = replace(context, pending=torch.cat([context.pending, first]))
        search = Gibbon(num_candidates=self.num_max_candidates)
        return torch.cat([first, search.propose(waiting, q - num_first, seed=derived_seed(seed, 1))])
