"""Learning from streams in constant time and memory.

The scikit-learn estimators are in modules of their own, so that the core does not load scikit-learn.
"""

from streamgp.streaming.learner import LearnInfo, StreamLearner
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.refitting import RefitReport
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.storage import STORED

__all__ = ["STORED", "LearnInfo", "OneVsRest", "RefitReport", "StreamLearner", "StreamSettings"]
