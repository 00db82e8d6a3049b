"""Fits on a Dask cluster: estimators that take Dask's arrays and data frames. Needs the extra `streamgp[dask]`."""

from streamgp.integrations.extras import missing_package

try:
    from streamgp.integrations.dask.estimators import DaskGPClassifier, DaskGPRegressor
    from streamgp.integrations.dask.keyed import DaskKeyedLearner
    from streamgp.integrations.dask.shards import DaskShards, from_collections
    from streamgp.integrations.dask.streams import DaskStream
except ModuleNotFoundError as error:
    raise missing_package(error, "dask") from error

__all__ = [
    "DaskGPClassifier",
    "DaskGPRegressor",
    "DaskKeyedLearner",
    "DaskShards",
    "DaskStream",
    "from_collections",
]
