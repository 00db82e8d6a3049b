"""Functions of a model drawn at finitely many inputs, and such draws given further values."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.gp import SparseProcess, sample_paths
from streamgp.linalg import apply, cholesky, solve_vector

__all__ = ["MatheronSamples", "sample_by_features", "sample_jointly"]


@final
@dataclass(frozen=True, eq=False)
class MatheronSamples:
    r"""Sampled functions $g_s$ at points $P$ and candidates $C$, with what conditioning them on values at $P$ needs.

    A draw of the process $f$ becomes a draw of $f$ given values at $P$ by Matheron's rule,

    $$
    f_s(C) = g_s(C) + k(C, P) \, (k(P, P) + \Sigma)^{-1} \, (v - g_s(P) - \varepsilon_s) ,
    \qquad \varepsilon_s \sim \mathcal N(0, \Sigma) .
    $$

    Attributes:
        at_points: $g_s(P)$.
        at_candidates: $g_s(C)$.
        points_covariance: $k(P, P)$.
        cross_covariance: $k(C, P)$.
        points_scale: Variances at $P$ before any data, whose rounding $k(P, P)$ carries; None where they are not known.
    """

    at_points: Float[Tensor, "s k"]
    at_candidates: Float[Tensor, "s n"]
    points_covariance: Float[Tensor, "k k"]
    cross_covariance: Float[Tensor, "n k"]
    points_scale: Float[Tensor, " k"] | None = None

    def given_own_values(self, index: Int[Tensor, "s t"], values: Float[Tensor, "s t"]) -> Float[Tensor, "s n"]:
        """Condition each draw, in one batch, on exact values at points of its own.

        Args:
            index: Which of the points each draw is conditioned on.
            values: The values there, without noise.
        """
        Kpp = self.points_covariance[index.unsqueeze(-1), index.unsqueeze(-2)]
        scale = None if self.points_scale is None else self.points_scale[index]
        factor, _ = cholesky(Kpp, scale=scale, name="the covariance of a path's points")
        weights = _solve(factor, values - self.at_points.gather(-1, index))
        spread = torch.zeros_like(self.at_points).scatter_add(-1, index, weights)
        return self.at_candidates + spread @ self.cross_covariance.mT

    def given_values(
        self, values: Float[Tensor, " k"], noise_variance: Float[Tensor, " k"], generator: torch.Generator | None
    ) -> Float[Tensor, "s n"]:
        """Condition all draws on the same noisy values at all points.

        Args:
            values: Values at the points.
            noise_variance: Their noise.
            generator: Draws the noise of each function.
        """
        A = self.points_covariance + torch.diag_embed(noise_variance)
        factor, _ = cholesky(A, scale=self.points_scale, name="the covariance of the look-ahead's points")
        noise = torch.randn(self.at_points.shape, generator=generator, dtype=A.dtype, device=A.device)
        residual = values - self.at_points - noise_variance.sqrt() * noise
        return self.at_candidates + apply(self.cross_covariance, _solve(factor, residual))


def sample_jointly(
    mean: Float[Tensor, " m"],
    covariance: Float[Tensor, "m m"],
    num_points: int,
    *,
    num_samples: int,
    generator: torch.Generator | None,
    scale: Float[Tensor, " m"] | None = None,
) -> MatheronSamples:
    """Draw exactly, by a factor of the joint covariance of points and candidates; cubic in their number.

    Args:
        mean: Of the points and then the candidates.
        covariance: Likewise.
        num_points: How many of them are points.
        num_samples: How many functions.
        generator: Source of randomness.
        scale: Variances before any data, if they are known.
    """
    factor, _ = cholesky(covariance, scale=scale, name="the covariance of the candidates")
    noise = torch.randn(num_samples, len(mean), generator=generator, dtype=mean.dtype, device=mean.device)
    values = mean + apply(factor, noise)
    k = num_points
    points_scale = None if scale is None else scale[:k]
    return MatheronSamples(values[:, :k], values[:, k:], covariance[:k, :k], covariance[k:, :k], points_scale)


def sample_by_features(
    process: SparseProcess,
    points: Float[Tensor, "k d"],
    candidates: Float[Tensor, "n d"],
    *,
    num_samples: int,
    num_features: int,
    generator: torch.Generator | None,
) -> MatheronSamples:
    r"""Draw by random features for the prior, exact in what the data says; linear in the number of candidates.

    Covariances of the drawn prior, of variance $\sigma^2$, are wrong by a standard deviation of at most
    $\sigma^2 / \sqrt{2 F}$ with $F$ frequencies, 2.2 % of the variance with 1024; variances are exact.

    Args:
        process: A sparse posterior with a stationary kernel.
        points: $P$.
        candidates: $C$.
        num_samples: How many functions.
        num_features: Number of random frequencies.
        generator: Source of randomness.
    """
    k, prior = len(points), process.prior
    paths = sample_paths(process, num_samples, generator, num_features=num_features)
    X = torch.cat([points, candidates])
    # Functions and covariances share the kernel matrix between inputs and inducing points, which is what costs.
    Kxz = process.inducing.crossed(X)
    values = prior.mean(X) + paths.feature_weights @ paths.features(X).mT + paths.update_weights @ Kxz.mT
    B = process.cross_weights(process.variance_reduction @ process.features(points))
    covariance = prior.covariance(X, points) - Kxz @ B
    return MatheronSamples(values[:, :k], values[:, k:], covariance[:k], covariance[k:], prior.variance(points))


def _solve(factor: Tensor, right: Tensor) -> Tensor:
    """Solve with a factorized matrix, shared or one for each row."""
    return solve_vector(factor, solve_vector(factor, right), is_transposed=True)
