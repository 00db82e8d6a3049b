"""The common part of likelihoods of counts."""

import math
from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.base import AbstractLikelihood
from streamgp.likelihoods.parameters import Probabilities
from streamgp.likelihoods.quantiles import count_quantiles, first_cumulatives

__all__ = ["AbstractCountLikelihood", "sample_counts"]

# torch.poisson counts in 64-bit integers, which end at 9.2e18.
_LARGEST_SAMPLED_RATE = 1e18


class AbstractCountLikelihood(AbstractLikelihood):
    """Targets that are whole numbers and not negative."""

    outcome_kind: ClassVar[str] = "count"
    support: ClassVar[tuple[float, float]] = (0.0, math.inf)

    @abstractmethod
    def predictive_cumulative(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $P(Y \le y)$ when $f \sim \mathcal{N}(m, v)$; in double precision, without gradient."""

    @abstractmethod
    def conditional_mean(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the mean count given latent values, with the axes of the likelihood's constants."""

    def _log_probability(self, f: Float[Tensor, "..."], count: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the log probability of any count of at least zero."""
        return self.log_density(f, count)

    def predictive_quantiles(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], probabilities: Probabilities
    ) -> Float[Tensor, "..."]:
        """Search for them among the counts."""
        return count_quantiles(
            self._log_probability,
            lambda k: self.predictive_cumulative(mean, variance, k),
            self.conditional_mean,
            mean=mean,
            variance=variance,
            moments=lambda: self._count_moments(mean.double(), variance.double()),
            probabilities=probabilities,
        )

    def first_cumulatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]
    ) -> Float[Tensor, "k ..."] | None:
        """By their probabilities."""
        like = self.conditional_mean(mean + variance)
        return first_cumulatives(
            self._log_probability,
            mean=mean.double(),
            variance=variance.double(),
            num_axes=like.dim(),
            num_values=like.numel(),
        )

    def _count_moments(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the counts."""
        return self.predictive_mean(mean, variance), self.predictive_variance(mean, variance)


def sample_counts(rate: Tensor, *, generator: torch.Generator | None) -> Tensor:
    """Draw Poisson counts."""
    return torch.poisson(rate.clamp(max=_LARGEST_SAMPLED_RATE), generator=generator)
