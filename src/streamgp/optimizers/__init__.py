"""Optimizers: ask for points, tell what came of them."""

from streamgp.optimizers.best import Best
from streamgp.optimizers.optimizer import Optimizer
from streamgp.optimizers.outcomes import Constraint
from streamgp.optimizers.settings import Search
from streamgp.optimizers.trust_region import RegionRules
from streamgp.optimizers.turbo import BestObserved, TurboOptimizer

__all__ = ["Best", "BestObserved", "Constraint", "Optimizer", "RegionRules", "Search", "TurboOptimizer"]
