import pytest

distributed = pytest.importorskip("distributed", reason="needs the extra streamgp[dask]")


@pytest.fixture(scope="module")
def client():
    """Two workers in threads of this process: what travels is the same as between processes."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
