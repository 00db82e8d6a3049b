"""Fits to data that lies in shards."""

from streamgp.training.sharding.climbing import climb_over_shards, evaluate_over_shards
from streamgp.training.sharding.clustering import Clusters, kmeans_over_shards
from streamgp.training.sharding.overview import Overview, overview_of
from streamgp.training.sharding.rows import sample_of
from streamgp.training.sharding.shards import AbstractShards, MappedShards

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
