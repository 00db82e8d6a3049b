"""Training: from data to a sparse GP."""

from streamgp.training.fit import fit
from streamgp.training.options import Minibatches
from streamgp.training.result import FitInfo, FitResult

__all__ = ["FitInfo", "FitResult", "Minibatches", "fit"]
