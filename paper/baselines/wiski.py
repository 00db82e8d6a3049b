"""WISKI: a GP on a grid that learns one observation after the other in constant time."""

import math
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from paper.baselines.cubic_interpolation import Grid, Weights
from paper.baselines.grid_evidence import Evidence, GridKernel, Statistics
from streamgp.checks import check_inputs, check_noise_variance, check_targets
from streamgp.linalg import cholesky, solve_lower
from streamgp.threads import limit_threads
from streamgp.training.lbfgs import maximize

__all__ = ["Wiski"]

# Lengthscales of the unit square, and outputscales and means of targets near one: wide, but away from overflow.
_LOG_BOUNDS = (math.log(1e-3), math.log(1e3))


@final
@dataclass(frozen=True, eq=False)
class Wiski:
    r"""A GP $f(x) = \mu + w(x)^\top u$ with grid values $u \sim \mathcal{N}(0, K)$ and known noise.

    Its size is that of the grid, whatever it has seen: the belief $\mathcal{N}(m, S)$ of the grid values, and sums over
    observations from which the marginal likelihood of any hyperparameters follows.

    Attributes:
        grid: The grid.
        kernel: Matérn-1/2 kernel of the grid values, and the constant mean.
        statistics: Sums over all observations.
        mean: Mean $m$ of the grid values, without the constant.
        covariance: Their covariance $S$.

    References:
        Stanton, Maddox, Delbridge, Wilson (2021), Kernel interpolation for scalable online Gaussian processes.
    """

    grid: Grid
    kernel: GridKernel
    statistics: Statistics
    mean: Float[Tensor, " r"]
    covariance: Float[Tensor, "r r"]

    @classmethod
    def start(cls, grid_size: int, kernel: GridKernel) -> "Wiski":
        """The prior: nothing has been observed."""
        grid = Grid(grid_size)
        covariance = kernel.matrix(grid.points(like=kernel.lengthscales))
        mean = covariance.new_zeros(grid.num_points)
        return cls(grid, kernel, Statistics.none(mean), mean, covariance)

    def observe(self, X: Tensor, y: Tensor, noise_variance: Tensor) -> "Wiski":
        r"""Learn $q$ observations by a Woodbury update of rank $q$, in $O(q r^2)$ whatever came before.

        Args:
            X: Inputs `(q, 2)` of the unit square.
            y: Targets `(q,)`.
            noise_variance: Their known noise variances `(q,)`, positive.
        """
        X = check_inputs(X, num_dims=2, like=self.mean)
        y = check_targets(y, X)
        noise_variance, _ = check_noise_variance(noise_variance, X)
        noise_variance = noise_variance.expand_as(y)
        W = self.grid.weights(X)
        WS = W.rows_of(self.covariance)
        innovation = y - self.kernel.constant - W.apply(self.mean)
        L, _ = cholesky(_product(WS, W) + noise_variance.diag(), name="the covariance of the new observations")
        gain = solve_lower(L, WS)
        return replace(
            self,
            statistics=self.statistics.add(W, y, noise_variance=noise_variance),
            mean=self.mean + gain.mT @ solve_lower(L, innovation.unsqueeze(-1)).squeeze(-1),
            covariance=self.covariance - gain.mT @ gain,
        )

    def predict(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the function at inputs `(n, 2)` of the unit square."""
        W = self.grid.weights(check_inputs(X, num_dims=2, like=self.mean))
        return self.kernel.constant + W.apply(self.mean), W.quadratic(self.covariance).clamp(min=0.0)

    def log_marginal_likelihood(self) -> Tensor:
        """Log marginal likelihood of all observations under the present hyperparameters."""
        evidence = Evidence.of(self.statistics)
        return evidence.log_marginal_likelihood(self.kernel, self.grid.points(like=self.mean))

    def refit(self, *, max_iterations: int = 30, tolerance: float = 1e-4) -> "Wiski":
        """Learn the hyperparameters by the marginal likelihood with the paper's priors, and the belief anew.

        Its cost depends on the grid alone, as no observation is visited.
        """
        evidence, points = Evidence.of(self.statistics), self.grid.points(like=self.mean)

        def objective(x: Tensor) -> Tensor:
            kernel = GridKernel.unpack(x)
            return evidence.log_marginal_likelihood(kernel, points) + kernel.log_prior()

        start = self.kernel.pack()
        lower, upper = (torch.full_like(start, bound) for bound in _LOG_BOUNDS)
        lower[-1], upper[-1] = -math.inf, math.inf  # the constant is not a logarithm
        with limit_threads():
            ascent = maximize(
                objective,
                start,
                bounds=(lower, upper),
                max_iterations=max_iterations,
                tolerance=tolerance,
                scale=max(self.statistics.num_observations, 1),
            )
        kernel = GridKernel.unpack(ascent.x)
        mean, covariance = evidence.belief(kernel, points)
        return replace(self, kernel=kernel, mean=mean, covariance=covariance)

    def choose(self, candidates: Tensor, targets: Tensor, *, noise_variance: float, num_chosen: int) -> list[int]:
        r"""Choose candidates one after the other, each the one that lowers the integrated variance most.

        Observing candidate $c$ with noise $\sigma^2$ lowers $\sum_t \operatorname{Var} f(t)$ by
        $\frac{w_c^\top S G S w_c}{w_c^\top S w_c + \sigma^2}$ with $G = \sum_t w_t w_t^\top$, so that neither the
        number of targets nor that of candidates enters the matrices.

        Args:
            candidates: Inputs `(n, 2)`.
            targets: Inputs `(t, 2)` over which the variance is summed.
            noise_variance: Noise variance that is expected of the next observations.
            num_chosen: How many to choose.
        """
        W, T = self.grid.weights(candidates), self.grid.weights(targets)
        S, G = self.covariance, T.gram(torch.ones_like(T.values[:, 0]))
        SGS = S @ G @ S
        variance, lowered = W.quadratic(S) + noise_variance, W.quadratic(SGS)
        chosen: list[int] = []
        for _ in range(num_chosen):
            gains = (lowered / variance).index_fill(0, torch.tensor(chosen, dtype=torch.long), -math.inf)
            index = int(gains.argmax())
            chosen.append(index)
            row, deviation = W.take(index), variance[index].sqrt()
            v, u = (row.rows_of(matrix).squeeze(0) / deviation for matrix in (S, SGS))  # u = S G v
            vGv, Wv = v @ G @ v, W.apply(v)
            lowered = lowered - 2.0 * Wv * W.apply(u) + vGv * Wv.square()
            variance = variance - Wv.square()
            SGS = SGS - v.outer(u) - u.outer(v) + vGv * v.outer(v)
            S = S - v.outer(v)
        return chosen


def _product(rows: Float[Tensor, "n r"], weights: Weights) -> Float[Tensor, "n n"]:
    r"""Compute $A W^\top$ for rows $A = W S$, symmetric up to rounding."""
    product = torch.einsum("imk,mk->im", rows[:, weights.columns], weights.values)
    return 0.5 * (product + product.mT)
