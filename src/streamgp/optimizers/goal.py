"""What is wanted: a large objective, where the constraints are likely to hold."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from jaxtyping import Float
from torch import Tensor

__all__ = ["FeasibleMean", "Goal", "Limits"]

Limits = tuple[float | None, float | None]


@final
@dataclass(frozen=True)
class Goal:
    """The objective is output 0 of a model; further outputs have limits.

    Attributes:
        weight: What the objective is multiplied by, 1 or -1, to be maximised.
        limits: Least and most value of each further output.
        cost: The negated value of a point that is not feasible: about that of the worst one known.
    """

    weight: float
    limits: tuple[Limits, ...] = ()
    cost: float = 0.0

    def objective(self, samples: Float[Tensor, "*s o"], X: Any = None) -> Float[Tensor, "*s"]:
        """The objective, to be maximised."""
        return self.weight * samples[..., 0]

    @property
    def constraints(self) -> list[Callable[[Tensor], Tensor]] | None:
        """Functions of samples that are negative where a limit is kept, as BoTorch has them; None if there are none."""
        functions = []
        for j, (lower, upper) in enumerate(self.limits, start=1):
            if upper is not None:
                functions.append(_excess(j, 1.0, upper))
            if lower is not None:
                functions.append(_excess(j, -1.0, -lower))
        return functions or None

    def feasibility(self, mean: Float[Tensor, "*s o"], variance: Float[Tensor, "*s o"]) -> Float[Tensor, "*s c"]:
        """Probability that each of the limits is kept, one column for each further output."""
        deviation = variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()
        columns = []
        for j, (lower, upper) in enumerate(self.limits, start=1):
            below = torch.ones_like(mean[..., j])
            if upper is not None:
                below = torch.special.ndtr((upper - mean[..., j]) / deviation[..., j])
            if lower is not None:
                below = below - torch.special.ndtr((lower - mean[..., j]) / deviation[..., j])
            columns.append(below)
        return torch.stack(columns, dim=-1) if columns else mean[..., :0]

    def violation(self, samples: Float[Tensor, "*s o"]) -> Float[Tensor, "*s"]:
        """By how much samples exceed the limits, in total."""
        total = torch.zeros_like(samples[..., 0])
        for excess in self.constraints or ():
            total = total + excess(samples).clamp_min(0.0)
        return total

    def value(self, posterior: Any) -> Float[Tensor, "*s"]:
        r"""The expected value $\mathbb E[(f_0 + M) \, 1\{\text{feasible}\}] - M$, as outputs are independent."""
        mean = posterior.mean
        if not self.limits:
            return self.objective(mean)
        chance = self.feasibility(mean, posterior.variance).prod(-1)
        return (self.objective(mean) + self.cost) * chance - self.cost


@final
class FeasibleMean(AcquisitionFunction):
    """The expected value of recommending one point; differentiable, and without samples."""

    def __init__(self, model: Model, goal: Goal, posterior_transform: None = None) -> None:
        """Keep model and goal.

        Args:
            model: Of all outputs.
            goal: What is wanted.
            posterior_transform: For BoTorch, which passes it; there is none.
        """
        super().__init__(model=model)
        self.goal = goal

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type] # BoTorch asks for its base class
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at points `(*b, 1, d)`."""
        return self.goal.value(self.model.posterior(X)).squeeze(-1)


def _excess(output: int, sign: float, limit: float) -> Callable[[Tensor], Tensor]:
    return lambda samples: sign * samples[..., output] - limit
