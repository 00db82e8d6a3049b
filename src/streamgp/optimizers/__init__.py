"""Optimizers: ask for points, tell what came of them."""

from streamgp.acquisition import RegionRules, Search
from streamgp.loops import Best, Constraint, Objective
from streamgp.optimizers.optimizer import Optimizer
from streamgp.optimizers.turbo import TurboOptimizer

__all__ = [
    "Best",
    "Constraint",
    "Objective",
    "Optimizer",
    "RegionRules",
    "Search",
    "TurboOptimizer",
]
