"""Optimizers: ask for points, tell what came of them."""

from streamgp.acquisition import PartitionSettings, RegionRules, Search
from streamgp.loops import Best, Constraint, Objective
from streamgp.optimizers.lamcts import LaMCTSOptimizer
from streamgp.optimizers.optimizer import Optimizer
from streamgp.optimizers.turbo import TurboOptimizer

__all__ = [
    "Best",
    "Constraint",
    "LaMCTSOptimizer",
    "Objective",
    "Optimizer",
    "PartitionSettings",
    "RegionRules",
    "Search",
    "TurboOptimizer",
]
