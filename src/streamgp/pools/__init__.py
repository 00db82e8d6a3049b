"""Pools: which members of a finite set to observe next."""

from streamgp.pools.learner import PoolLearner
from streamgp.pools.prediction import PoolPrediction
from streamgp.pools.settings import Training

__all__ = ["PoolLearner", "PoolPrediction", "Training"]
