"""All that a rule chooses from."""

from dataclasses import dataclass, field
from typing import Any, final

import torch
from botorch.models.model import Model
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition.feasible_objective import FeasibleObjective
from streamgp.acquisition.pool import Pool
from streamgp.acquisition.space import AbstractSpace, Search

__all__ = ["Context"]

_NUM_CENTERS = 5


@final
@dataclass(frozen=True, eq=False)
class Context:
    """A model, what is wanted of it, and the points that matter; in the inputs and units of the model.

    Attributes:
        model: Of the objectives and of all that is limited; without data, whatever was fitted last.
        objective: What is wanted.
        space: Where to search.
        baseline: Inputs of which something is known.
        observed: Outcomes of the first objective there, to be maximized; NaN where points were compared.
        pending: Inputs whose outcomes are awaited.
        search: How much work to do.
        is_comparison: Whether points are compared with each other, instead of observed.
        pool: Members and what matters of them, in a finite space.
        memory: What the rule remembers of the run.
        taken: Points of the space that were evaluated, or will be.
        num_chosen: Number of these beyond the initial design.
        doubted: The point of the best outcome, `(1, d)`, where it is not known whether outcomes differ by noise, and no
            point was evaluated twice; None where there is no doubt.
    """

    model: Model
    objective: FeasibleObjective
    space: AbstractSpace
    baseline: Float[Tensor, "n d"]
    observed: Float[Tensor, " n"]
    pending: Float[Tensor, "p d"]
    search: Search = field(default_factory=Search)
    is_comparison: bool = False
    pool: Pool | None = None
    memory: Any = None
    taken: Tensor = field(default_factory=lambda: torch.empty(0, 0, dtype=torch.float64))
    num_chosen: int = 0
    doubted: Tensor | None = None

    @property
    def pending_or_none(self) -> Tensor | None:
        """Pending inputs as BoTorch has them."""
        return self.pending if len(self.pending) else None

    def best_known(self) -> Float[Tensor, ""]:
        """The largest mean of the objective at known points that are likely feasible; the least if none is."""
        posterior: Any = self.model.posterior(self.baseline)
        score = self.objective.score(posterior.mean)
        is_good = (self.objective.feasibility(posterior) >= 0.5).all(-1)
        return (score[is_good].max() if is_good.any() else score.min()).detach()

    def centers(self) -> Float[Tensor, "c d"]:
        """The known inputs of largest expected value."""
        value = self.objective.value(self.model.posterior(self.baseline)).detach()
        return self.baseline[value.topk(min(_NUM_CENTERS, len(value))).indices]

    def candidates(self, num_points: int, generator: torch.Generator) -> Tensor:
        """Points of the space among which a rule may choose."""
        return self.space.candidates(num_points, centers=self.centers(), generator=generator)
