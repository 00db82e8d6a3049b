"""Training: from data to a sparse GP."""

from streamgp.training.arguments import Minibatches
from streamgp.training.fit import fit
from streamgp.training.fitted_gp import FittedGP
from streamgp.training.result import FitInfo, FitResult

__all__ = ["FitInfo", "FitResult", "FittedGP", "Minibatches", "fit"]
