"""Tune the magnets of a free-electron laser."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from paper.problems.base import AbstractProblem, Optimum, add_noise, check_noise_variance
from paper.problems.laser_simulator import PRIOR_MEAN, load_rows, load_simulator

__all__ = ["Laser"]

# Rows from which initial designs are drawn, the last ones, and the noise that their measured energies are given.
_NUM_LAST = 1000
_INITIAL_NOISE = 0.01
# The best that L-BFGS-B finds from the 40 rows of largest value, 5.526 from most of them; in shares of the bounds.
_BEST_KNOWN = (
    *(0.74589, 0.355832, 0.254065, 0.870603, 0.187606, 0.600549, 0.388635, 0.38825),
    *(0.576615, 0.298261, 0.477625, 0.610953, 0.636045, 0.719697, 0.691853, 0.440152),
)


@final
@dataclass(frozen=True)
class Laser(AbstractProblem):
    """Maximize the energy of pulses over 16 quadrupole magnets.

    The machine is the mean of an online GP with 600 basis vectors that has seen 2000 rows of an archive of the LCLS
    laser; far from them it is 1. The bounds are the smallest and largest settings of those rows. Needs the data set
    `laser`. One hundred inputs take less than a millisecond.

    Attributes:
        noise_variance: Variance of the noise of an observation.

    References:
        McIntire, Ratner, Ermon (2016), Sparse Gaussian processes for Bayesian optimization.
    """

    noise_variance: float = 0.01

    def __post_init__(self) -> None:
        """Check the noise."""
        check_noise_variance(self.noise_variance)

    @cached_property
    def bounds(self) -> Tensor:
        X = load_rows().X
        return torch.stack([X.amin(0), X.amax(0)])

    @property
    def optimum(self) -> Optimum:
        """The largest value that is known."""
        lower, upper = self.bounds
        X = (lower + (upper - lower) * torch.tensor([_BEST_KNOWN], dtype=torch.float64)).clamp(lower, upper)
        return Optimum(float(self.evaluate(X)), X)

    def initial_design(self, num_points: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Draw from the last 1000 rows of the archive, without repeats.

        Args:
            num_points: Number of rows.
            generator: Source of randomness.

        Returns:
            Inputs `(n, 16)`, and measured energies `(n)` with a noise of standard deviation 0.01.
        """
        rows = load_rows()
        X, y = rows.X[-_NUM_LAST:], rows.y[-_NUM_LAST:]
        drawn = torch.randperm(len(X), generator=generator)[:num_points]
        return X[drawn], add_noise(y[drawn], _INITIAL_NOISE**2, generator)

    @cached_property
    def _basis(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Center and scale of inputs, the scaled basis vectors, and logarithms that complete the squares."""
        simulator, X = load_simulator(), load_rows().X
        center, scale = X.mean(0), simulator.kernel.inverse_squares.sqrt()
        B = (X[list(simulator.rows)] - center) * scale
        return center, scale, B, -0.5 * B.square().sum(-1) + math.log(simulator.kernel.signal_variance)

    def _evaluate(self, X: Tensor) -> Tensor:
        center, scale, B, offset = (part.to(X) for part in self._basis)
        A = (X - center) * scale
        logarithm = torch.baddbmm(offset.expand(1, 1, -1), A.reshape(1, -1, A.shape[-1]), B.mT.unsqueeze(0)).squeeze(0)
        logarithm -= 0.5 * A.reshape(-1, A.shape[-1]).square().sum(-1, keepdim=True)
        values = PRIOR_MEAN + logarithm.exp_() @ load_simulator().weights.to(X)
        return values.reshape(X.shape[:-1])

    def observe(self, X: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return add_noise(self.evaluate(X), self.noise_variance, generator)
