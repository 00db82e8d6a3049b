"""The marginal likelihood of a GP on a grid, through sums over the observations."""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from paper.baselines.cubic_interpolation import Weights
from streamgp.linalg import cholesky, solve_lower

__all__ = ["Evidence", "GridKernel", "Statistics"]

# Eigenvalues of the precision below this share of the largest are rounding.
_LEAST_SHARE = 1e-12


@final
@dataclass(frozen=True, eq=False)
class GridKernel:
    r"""The kernel $s \exp(-\lVert (g - g') / \ell \rVert)$ with a constant mean.

    Attributes:
        lengthscales: One for each coordinate.
        outputscale: The variance $s$.
        constant: The mean.
    """

    lengthscales: Float[Tensor, " 2"]
    outputscale: Float[Tensor, ""]
    constant: Float[Tensor, ""]

    def matrix(self, points: Float[Tensor, "r 2"]) -> Float[Tensor, "r r"]:
        """The covariance between all grid points."""
        scaled = points / self.lengthscales
        squared = (scaled.unsqueeze(1) - scaled.unsqueeze(0)).square().sum(-1)
        # The root has no derivative at zero; the distance of a point to itself does not depend on lengthscales.
        return self.outputscale * (-squared.clamp(min=1e-30).sqrt()).exp()

    def log_prior(self) -> Float[Tensor, ""]:
        """Log density, up to a constant, of the paper's priors: Gamma(3, 6) and Gamma(2, 0.15)."""
        lengthscales = (2.0 * self.lengthscales.log() - 6.0 * self.lengthscales).sum()
        return lengthscales + self.outputscale.log() - 0.15 * self.outputscale

    def pack(self) -> Float[Tensor, " 4"]:
        """All hyperparameters in one vector, the positive ones as logarithms."""
        return torch.cat([self.lengthscales.log(), self.outputscale.log().reshape(1), self.constant.reshape(1)])

    @classmethod
    def unpack(cls, vector: Float[Tensor, " 4"]) -> "GridKernel":
        """Undo `pack`."""
        return cls(vector[:2].exp(), vector[2].exp(), vector[3])


@final
@dataclass(frozen=True, eq=False)
class Statistics:
    r"""Sums over observations $y = W u + \mu + \varepsilon$ with $\varepsilon \sim \mathcal{N}(0, \Sigma)$.

    Attributes:
        precision: The matrix $W^\top \Sigma^{-1} W$.
        weighted_targets: The vector $W^\top \Sigma^{-1} y$.
        weighted_ones: The vector $W^\top \Sigma^{-1} 1$.
        moments: The numbers $y^\top \Sigma^{-1} y$, $1^\top \Sigma^{-1} y$ and $1^\top \Sigma^{-1} 1$.
        log_noise: The number $\log \lvert \Sigma \rvert$.
        num_observations: How many there were.
    """

    precision: Float[Tensor, "r r"]
    weighted_targets: Float[Tensor, " r"]
    weighted_ones: Float[Tensor, " r"]
    moments: Float[Tensor, " 3"]
    log_noise: Float[Tensor, ""]
    num_observations: int

    @classmethod
    def none(cls, zero: Float[Tensor, " r"]) -> "Statistics":
        """Sums over nothing; `zero` has an entry for each grid point."""
        return cls(zero.new_zeros(len(zero), len(zero)), zero, zero, zero.new_zeros(3), zero.new_zeros(()), 0)

    def add(self, W: Weights, y: Float[Tensor, " q"], *, noise_variance: Float[Tensor, " q"]) -> "Statistics":
        """Add observations."""
        inverse = 1.0 / noise_variance
        return Statistics(
            precision=self.precision + W.gram(inverse),
            weighted_targets=self.weighted_targets + W.gather(inverse * y),
            weighted_ones=self.weighted_ones + W.gather(inverse),
            moments=self.moments + torch.stack([(inverse * y * y).sum(), (inverse * y).sum(), inverse.sum()]),
            log_noise=self.log_noise + noise_variance.log().sum(),
            num_observations=self.num_observations + len(y),
        )


@final
@dataclass(frozen=True, eq=False)
class Evidence:
    r"""What the marginal likelihood needs of the observations.

    With a root $W^\top \Sigma^{-1} W = R R^\top$ of $k$ columns, $W^\top \Sigma^{-1} y = R z$ and $M = I + R^\top K R$,

    $$
    \log p(y) = -\tfrac12 \left( \log \lvert M \rvert + \log \lvert 2 \pi \Sigma \rvert
        + y^\top \Sigma^{-1} y - z^\top z + z^\top M^{-1} z \right)
    $$

    for targets without their mean, and the grid values have mean $K R M^{-1} z$ and covariance
    $K - K R M^{-1} R^\top K$. An evaluation costs $O(r^2 k)$ with $k \le r$ for any number of observations.

    Attributes:
        root: The root $R$.
        targets: The vector $z$ of the targets with their mean.
        ones: The vector $z$ of targets that are all one.
        statistics: The sums.
    """

    root: Float[Tensor, "r k"]
    targets: Float[Tensor, " k"]
    ones: Float[Tensor, " k"]
    statistics: Statistics

    @classmethod
    def of(cls, statistics: Statistics) -> "Evidence":
        """Find the root, once for all hyperparameters."""
        values, vectors = torch.linalg.eigh(statistics.precision)
        is_kept = values > _LEAST_SHARE * values.max()
        deviations, vectors = values[is_kept].sqrt(), vectors[:, is_kept]
        targets, ones = (
            (vectors.mT @ sums) / deviations for sums in (statistics.weighted_targets, statistics.weighted_ones)
        )
        return cls(vectors * deviations, targets, ones, statistics)

    def log_marginal_likelihood(self, kernel: GridKernel, points: Float[Tensor, "r 2"]) -> Float[Tensor, ""]:
        """Log marginal likelihood of all observations."""
        mean, moments = kernel.constant, self.statistics.moments
        z = self.targets - mean * self.ones
        L = self._factor(kernel.matrix(points) @ self.root)
        unexplained = moments[0] - 2.0 * mean * moments[1] + mean.square() * moments[2] - z.square().sum()
        quadratic = unexplained + solve_lower(L, z.unsqueeze(-1)).square().sum()
        constant = self.statistics.log_noise + self.statistics.num_observations * math.log(2.0 * math.pi)
        return -0.5 * (2.0 * L.diagonal().log().sum() + constant + quadratic)

    def belief(
        self, kernel: GridKernel, points: Float[Tensor, "r 2"]
    ) -> tuple[Float[Tensor, " r"], Float[Tensor, "r r"]]:
        """Mean, without the constant, and covariance of the grid values."""
        K = kernel.matrix(points)
        KR = K @ self.root
        L = self._factor(KR)
        explained = solve_lower(L, KR.mT)
        z = self.targets - kernel.constant * self.ones
        mean = explained.mT @ solve_lower(L, z.unsqueeze(-1)).squeeze(-1)
        return mean, K - explained.mT @ explained

    def _factor(self, KR: Float[Tensor, "r k"]) -> Float[Tensor, "k k"]:
        M = self.root.mT @ KR
        identity = torch.eye(len(M), dtype=M.dtype, device=M.device)
        return cholesky(0.5 * (M + M.mT) + identity, name="the covariance of the grid's observations")[0]
