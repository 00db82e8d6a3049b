"""Fits to data that lies in shards."""

from streamgp.training.sharding.clustering import Clusters, kmeans_over_shards
from streamgp.training.sharding.moments import RowMoments, row_moments, sample_of
from streamgp.training.sharding.optimize import evaluate_over_shards, optimize_over_shards
from streamgp.training.sharding.shards import AbstractShards, MappedShards

__all__ = [
    "AbstractShards",
    "Clusters",
    "MappedShards",
    "RowMoments",
    "evaluate_over_shards",
    "kmeans_over_shards",
    "optimize_over_shards",
    "row_moments",
    "sample_of",
]
