"""Pools: which members of a finite set to observe next."""

from streamgp.loops import ResponsePrediction, Training
from streamgp.pools.learner import PoolLearner

__all__ = ["PoolLearner", "ResponsePrediction", "Training"]
