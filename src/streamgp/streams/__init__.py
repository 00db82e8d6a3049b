"""Streams as one model: a mixture of a few Kalman filters over space and time, compiled."""

from streamgp.streams.learner import StreamLearner, StreamOptions, Ticket
from streamgp.streams.predictive import Forecast
from streamgp.streams.storage import STORED

__all__ = ["STORED", "Forecast", "StreamLearner", "StreamOptions", "Ticket"]
