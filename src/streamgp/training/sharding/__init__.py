"""Fits to data that lies in shards."""

from streamgp.training.sharding.optimize import Clusters, evaluate_over_shards, kmeans_over_shards, optimize_over_shards
from streamgp.training.sharding.shards import AbstractShards, MappedShards, RowMoments, row_moments, sample_of

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
