"""Streams as one model: a mixture of a few Kalman filters over space and time, compiled."""

from streamgp.streams.latent_forecasts import ClassForecast, LatentForecast
from streamgp.streams.learner import StreamLearner, Ticket
from streamgp.streams.options import StreamOptions
from streamgp.streams.predictive import Forecast
from streamgp.streams.storage import STORED

__all__ = ["STORED", "ClassForecast", "Forecast", "LatentForecast", "StreamLearner", "StreamOptions", "Ticket"]
