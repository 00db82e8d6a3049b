"""Learners of maps: which members of a pool, or points of a space, to observe next."""

from streamgp.loops import ResponsePrediction, Training
from streamgp.pools.learner import Learner, PoolLearner
from streamgp.pools.region import Region

__all__ = ["Learner", "PoolLearner", "Region", "ResponsePrediction", "Training"]
