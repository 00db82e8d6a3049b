"""What likelihoods of two outcomes have in common."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.quadrature import AbstractQuadratureLikelihood
from streamgp.likelihoods.quantiles import binary_quantiles

__all__ = ["AbstractBinaryLikelihood"]


class AbstractBinaryLikelihood(AbstractQuadratureLikelihood):
    """Outcomes 0 and 1, of which a change of sign of the latent value makes the other."""

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the probability of 1."""
        return self.log_predictive_density(mean, variance, torch.ones_like(mean)).exp()

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the product of the probabilities of both outcomes."""
        return self.predictive_mean(mean, variance) * self.predictive_mean(-mean, variance)

    def predictive_quantiles(
        self,
        mean: Float[Tensor, "..."],
        variance: Float[Tensor, "..."],
        probabilities: Sequence[float] | Tensor,
    ) -> Float[Tensor, "..."]:
        """Return 0 where the probability of 0 reaches the given one, else 1."""
        return binary_quantiles(self.predictive_mean(-mean, variance), probabilities)
