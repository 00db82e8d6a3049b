"""Fits to data that lies in shards."""

from streamgp.training.sharding.climbing import climb_over_shards, evaluate_over_shards
from streamgp.training.sharding.clustering import Clusters, kmeans_over_shards
from streamgp.training.sharding.shards import AbstractShards, MappedShards, Overview, overview_of, sample_of

__all__ = [
    "AbstractShards",
    "Clusters",
    "MappedShards",
    "Overview",
    "climb_over_shards",
    "evaluate_over_shards",
    "kmeans_over_shards",
    "overview_of",
    "sample_of",
]
