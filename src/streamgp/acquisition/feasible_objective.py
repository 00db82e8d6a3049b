"""Objectives to be maximized where constraints hold, as functions of the outputs of a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from jaxtyping import Float
from torch import Tensor

from streamgp.models.output import Output, root_of_variance
from streamgp.models.posterior import LatentPosterior

__all__ = ["FeasibleMean", "FeasibleObjective", "Limits"]

Limits = tuple[float | None, float | None]


@final
@dataclass(frozen=True)
class FeasibleObjective:
    """The first outputs of a model are objectives; further ones have limits.

    Attributes:
        weights: What each objective is multiplied by, 1 or -1, to be maximized.
        limits: Least and most value of each further output.
        cost: The negated value of a point that is not feasible: about that of the worst one known.
        floors: Score of each objective that is just not acceptable; negative infinity where there is none.
    """

    weights: tuple[float, ...] = (1.0,)
    limits: tuple[Limits, ...] = ()
    cost: float = 0.0
    floors: tuple[float, ...] = ()

    @property
    def num_objectives(self) -> int:
        """Number of objectives."""
        return len(self.weights)

    def score(self, samples: Float[Tensor, "*s o"], X: Any = None) -> Float[Tensor, "*s"]:
        """The first objective, to be maximized."""
        return self.weights[0] * samples[..., 0]

    def scores(self, samples: Float[Tensor, "*s o"]) -> Float[Tensor, "*s k"]:
        """All objectives, to be maximized."""
        return samples[..., : self.num_objectives] * samples.new_tensor(self.weights)

    @property
    def constraints(self) -> list[Callable[[Tensor], Tensor]] | None:
        """Functions of samples that are negative where a limit is kept, as BoTorch has them; None if there are none."""
        functions = []
        for j, (lower, upper) in enumerate(self.limits, start=self.num_objectives):
            if upper is not None:
                functions.append(_excess(j, 1.0, upper))
            if lower is not None:
                functions.append(_excess(j, -1.0, -lower))
        return functions or None

    def feasibility(self, posterior: Any) -> Float[Tensor, "*s c"]:
        """Probability that each of the limits is kept, one column for each further output."""
        columns = []
        for j, (lower, upper) in enumerate(self.limits, start=self.num_objectives):
            output = _Marginal.of(posterior, j)
            below = torch.ones_like(output.mean)
            if upper is not None:
                below = torch.special.ndtr((upper - output.mean) / output.deviation)
            if lower is not None:
                below = below - torch.special.ndtr((lower - output.mean) / output.deviation)
            columns.append(below)
        return torch.stack(columns, dim=-1) if columns else posterior.mean[..., :0]

    def violation(self, samples: Float[Tensor, "*s o"]) -> Float[Tensor, "*s"]:
        """By how much samples exceed the limits, in total."""
        total = torch.zeros_like(samples[..., 0])
        for excess in self.constraints or ():
            total = total + excess(samples).clamp_min(0.0)
        return total

    def value(self, posterior: Any) -> Float[Tensor, "*s"]:
        r"""The expected value $\mathbb E[(f_0 + M) \, 1\{\text{feasible}\}] - M$, as outputs are independent."""
        score = self.weights[0] * _Marginal.of(posterior, 0).mean
        if not self.limits:
            return score
        return (score + self.cost) * self.feasibility(posterior).prod(-1) - self.cost


@final
@dataclass(frozen=True, eq=False)
class _Marginal:
    """One output of a posterior; nothing is computed of the others where the posterior is made of such."""

    posterior: Any
    index: int

    @classmethod
    def of(cls, posterior: Any, index: int) -> "_Marginal | Output":
        return posterior.outputs[index] if isinstance(posterior, LatentPosterior) else cls(posterior, index)

    @property
    def mean(self) -> Tensor:
        return self.posterior.mean[..., self.index]

    @property
    def deviation(self) -> Tensor:
        return root_of_variance(self.posterior.variance[..., self.index])


@final
class FeasibleMean(AcquisitionFunction):
    """The expected value of recommending one point; differentiable, and without samples."""

    def __init__(self, model: Model, objective: FeasibleObjective, posterior_transform: None = None) -> None:
        """Keep model and objective.

        Args:
            model: Of all outputs.
            objective: What is wanted.
            posterior_transform: For BoTorch, which passes it; there is none.
        """
        super().__init__(model=model)
        self.objective = objective

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type] # BoTorch asks for its base class
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at points `(*b, 1, d)`."""
        return self.objective.value(self.model.posterior(X)).squeeze(-1)


def _excess(output: int, sign: float, limit: float) -> Callable[[Tensor], Tensor]:
    return lambda samples: sign * samples[..., output] - limit
