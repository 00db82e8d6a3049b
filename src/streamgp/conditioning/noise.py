"""Observation noise: one variance for all, one for each observation, or a full covariance."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_noise_variance
from streamgp.errors import OptionError, ValueRangeError
from streamgp.linalg import cholesky, solve_lower

__all__ = ["LEAST_RELATIVE_NOISE", "Noise"]

# Relative to the prior variance, noise below this counts as this where its reciprocal weighs observations: products of
# two such weights stay finite.
LEAST_RELATIVE_NOISE = {torch.float64: 1e-60, torch.float32: 1e-12}


@final
@dataclass(frozen=True, eq=False)
class Noise:
    r"""The covariance $\Sigma$ of the observations.

    Attributes:
        values: A number, variances `(*b, n)`, or a matrix `(*b, n, n)`.
        is_matrix: Whether it is a matrix.
    """

    values: Float[Tensor, "..."]
    is_matrix: bool = False

    @classmethod
    def read(cls, noise_variance: object, X: Tensor) -> "Noise":
        """Check what a user passed."""
        if noise_variance is None:
            raise OptionError(
                "Neither noise_variance nor likelihood was given, so how far the observations can be trusted is not "
                "known. Pass noise_variance=..., the variance of the Gaussian noise, or a likelihood."
            )
        return cls(*check_noise_variance(noise_variance, X))

    def add_to(self, covariance: Float[Tensor, "*b n n"]) -> Float[Tensor, "*c n n"]:
        r"""Add $\Sigma$ to a covariance."""
        if self.is_matrix:
            return covariance + self.values
        return covariance + torch.diag_embed(self._per_observation(covariance.shape[-1]))

    def whiten(self, rows: Float[Tensor, "*b n k"]) -> Float[Tensor, "*c n k"]:
        r"""Apply $\Sigma^{-1/2}$ to rows that belong to the observations; needs positive noise."""
        if self.is_matrix:
            factor, _ = cholesky(self.values, name="noise_variance")
            return solve_lower(factor, rows)
        return rows / self._per_observation(rows.shape[-2]).sqrt().unsqueeze(-1)

    def variances(self, num_observations: int) -> Float[Tensor, "*b n"]:
        """The diagonal."""
        return self.values.diagonal(dim1=-2, dim2=-1) if self.is_matrix else self._per_observation(num_observations)

    def precisions(self, prior_variance: Float[Tensor, "*b n"]) -> Float[Tensor, "*c n"]:
        """Reciprocal variances, as weights of observations of values with known prior variance."""
        least = LEAST_RELATIVE_NOISE[prior_variance.dtype] * prior_variance
        return 1.0 / torch.maximum(self.variances(prior_variance.shape[-1]), least)

    def check_positive(self) -> "Noise":
        """Refuse noise-free observations, whose information is infinite."""
        variances = self.variances(1).detach() if self.values.dim() else self.values.detach()
        if variances.numel() and float(variances.min() if variances.dim() else variances) <= 0:
            raise ValueRangeError(
                "noise_variance must be positive to absorb observations, but is zero. Pass a small variance, "
                "or use condition, which also takes observations without noise."
            )
        return self

    def _per_observation(self, n: int) -> Tensor:
        return self.values.expand(n) if self.values.dim() == 0 else self.values
