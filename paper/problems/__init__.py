"""Problems of Bayesian optimization, each with its optimum and its noise; all are maximized."""

from paper.problems.ackley import Ackley
from paper.problems.base import AbstractProblem, Optimum
from paper.problems.branin import Branin
from paper.problems.hartmann import Hartmann6, PoissonHartmann6
from paper.problems.laser import Laser
from paper.problems.mujoco import Hopper, Swimmer
from paper.problems.preference import PreferenceCosine
from paper.problems.rover import Rover

__all__ = [
    "AbstractProblem",
    "Ackley",
    "Branin",
    "Hartmann6",
    "Hopper",
    "Laser",
    "Optimum",
    "PoissonHartmann6",
    "PreferenceCosine",
    "Rover",
    "Swimmer",
]
