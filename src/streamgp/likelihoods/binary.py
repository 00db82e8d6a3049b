"""The common part of likelihoods of two outcomes."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.base import AbstractLikelihood
from streamgp.likelihoods.parameters import Probabilities
from streamgp.likelihoods.quantiles import binary_quantiles

__all__ = ["AbstractBinaryLikelihood"]


class AbstractBinaryLikelihood(AbstractLikelihood):
    """Outcomes 0 and 1, of which a change of sign of the latent value makes the other."""

    outcome_kind: ClassVar[str] = "class"
    support: ClassVar[tuple[float, float]] = (0.0, 1.0)
    response_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    is_log_concave: ClassVar[bool] = True

    def expected_curvature(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Average the curvature over both outcomes, with their predicted probabilities."""
        m, v = torch.broadcast_tensors(mean, variance)
        success = self.predictive_mean(m, v)
        (_, zero), (_, one) = (
            self.expected_derivatives(m, v, outcome)
            for outcome in (torch.zeros_like(success), torch.ones_like(success))
        )
        return -((1.0 - success) * zero + success * one)

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the probability of 1."""
        return self.log_predictive_density(mean, variance, torch.ones_like(mean)).exp()

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the product of the probabilities of both outcomes."""
        return self.predictive_mean(mean, variance) * self.predictive_mean(-mean, variance)

    def predictive_quantiles(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], probabilities: Probabilities
    ) -> Float[Tensor, "..."]:
        """Return 0 where the probability of 0 reaches the given one, else 1."""
        return binary_quantiles(self.predictive_mean(-mean, variance), probabilities)

    def predictive_cumulative(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        """Return the probability of 0 below 1."""
        zero = self.predictive_mean(-mean, variance)
        return torch.where(y < 0, 0.0, torch.where(y < 1, zero, torch.ones_like(zero)))
