"""Problems of Bayesian optimization, each with its optimum and its noise; all are maximized."""

from streamgp.problems.ackley import Ackley
from streamgp.problems.base import AbstractProblem, Optimum
from streamgp.problems.branin import Branin
from streamgp.problems.hartmann import Hartmann6, PoissonHartmann6
from streamgp.problems.laser import Laser
from streamgp.problems.mujoco import Hopper, Swimmer
from streamgp.problems.preference import PreferenceCosine
from streamgp.problems.rover import Rover

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
