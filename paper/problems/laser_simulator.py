"""The stand-in for a free-electron laser: the mean of an online GP that has seen rows of an archive.

Its hyperparameters and the choice of basis vectors take minutes, and are kept as a file; the rows themselves are read
from the archive.
"""

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from paper.datasets import read_table
from paper.problems.basis_vector_gp import BasisVectorGP, SquaredExponential
from paper.problems.fitc import fit_fitc

__all__ = ["ArchiveRows", "LaserSimulator", "fit_simulator", "load_rows", "load_simulator"]

_ENERGY, _BEND, _FIRST_MAGNET, _NUM_MAGNETS = 1, 3, 6, 16
_BEND_SETTING = 11.45
_LEAST_ENERGY, _MOST_ENERGY = 0.2, 6.0
_ROWS = slice(50, 2050)
PRIOR_MEAN = 1.0
NUM_BASIS = 600
NUM_PSEUDO = 300


@final
@dataclass(frozen=True, eq=False)
class ArchiveRows:
    """Rows of the archive, in their order.

    Attributes:
        X: Settings of 16 quadrupole magnets.
        y: Energies of pulses.
    """

    X: Float[Tensor, "n 16"]
    y: Float[Tensor, " n"]


@final
@dataclass(frozen=True, eq=False)
class LaserSimulator:
    """The mean of an online GP.

    Attributes:
        kernel: Its kernel.
        noise_variance: Variance of the noise that it was fitted with.
        rows: Which rows of the archive are basis vectors.
        weights: Weights of their covariances.
    """

    kernel: SquaredExponential
    noise_variance: float
    rows: tuple[int, ...]
    weights: Float[Tensor, " m"]


@lru_cache(maxsize=1)
def load_rows() -> ArchiveRows:
    """The 2000 rows of the archive that the simulator is made from."""
    table = read_table("laser/lcls_data.csv.gz", num_header=1)
    energy = table[:, _ENERGY]
    is_used = (energy > _LEAST_ENERGY) & (energy < _MOST_ENERGY) & (table[:, _BEND] == _BEND_SETTING)
    table = table[is_used][_ROWS]
    return ArchiveRows(table[:, _FIRST_MAGNET : _FIRST_MAGNET + _NUM_MAGNETS], table[:, _ENERGY])


def fit_simulator(rows: ArchiveRows, *, num_basis: int = NUM_BASIS, num_pseudo: int = NUM_PSEUDO) -> LaserSimulator:
    """Make the simulator: hyperparameters by a FITC likelihood, then all rows through an online GP; takes minutes."""
    found = fit_fitc(rows.X, rows.y, num_pseudo=num_pseudo)
    kernel = SquaredExponential(math.exp(found.log_signal_variance), found.log_inverse_squares.exp())
    noise = math.exp(found.log_noise_variance)
    start = BasisVectorGP.empty(kernel, noise_variance=noise, max_basis=num_basis, prior_mean=PRIOR_MEAN)
    gp = start.learn(rows.X, rows.y)
    indices = [int((point == rows.X).all(-1).nonzero()[0]) for point in gp.points]
    return LaserSimulator(kernel, noise, tuple(indices), gp.weights)


@lru_cache(maxsize=1)
def load_simulator() -> LaserSimulator:
    """The simulator as it was fitted, by `fit_simulator` with its defaults."""
    content = json.loads(files("paper.problems").joinpath("laser_simulator.json").read_text(encoding="utf-8"))
    kernel = SquaredExponential(
        content["signal_variance"], torch.tensor(content["inverse_squares"], dtype=torch.float64)
    )
    weights = torch.tensor(content["weights"], dtype=torch.float64)
    return LaserSimulator(kernel, content["noise_variance"], tuple(content["rows"]), weights)
