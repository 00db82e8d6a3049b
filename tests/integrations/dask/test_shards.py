import os
import signal
import time
from threading import Thread

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="needs the extra streamgp[dask]")

import streamgp as sg  # noqa: E402
from streamgp.errors import ClusterError  # noqa: E402
from streamgp.integrations.dask.shards import DaskShards  # noqa: E402


def pairs(num_shards=4):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40 * num_shards, 2))
    y = np.sin(5.0 * X[:, 0])
    return [(X[i::num_shards], (y[i::num_shards] > 0.2).astype(float)) for i in range(num_shards)]


def sleepy(index, shard, kept):
    time.sleep(5.0)
    return kept, index


def test_steps_keep_on_the_workers_what_they_are_given(client):
    shards = DaskShards(client, [client.submit(lambda v: v, each, pure=False) for each in pairs(3)])
    assert shards.run(lambda index, shard, kept: (index, len(shard[1]))) == [40, 40, 40]
    assert shards.run(lambda index, shard, kept: (kept + 1, kept)) == [0, 1, 2]
    assert shards.run(lambda index, shard, kept: (kept, kept)) == [1, 2, 3]


def test_a_step_that_takes_too_long_is_given_up(client):
    shards = DaskShards(client, [client.submit(lambda v: v, each, pure=False) for each in pairs(1)], time_limit=0.2)
    with pytest.raises(ClusterError, match=r"did not end within 0\.2 seconds"):
        shards.run(sleepy)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing():
    options = {"likelihood": "bernoulli", "num_inducing": 6, "max_iterations": 12}
    expected = sg.fit(pairs(), map=map, **options)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        shards = DaskShards(client, [client.submit(_keep, each, pure=False) for each in pairs()])
        shards.run(_count)
        victim = next(iter(cluster.workers.values())).pid

        def kill() -> None:
            time.sleep(1.0)
            os.kill(victim, signal.SIGKILL)

        killer = Thread(target=kill)
        killer.start()
        result = sg.fit(shards, **options)
        killer.join()
    assert result.info.bound == pytest.approx(expected.info.bound, rel=1e-8)
    np.testing.assert_allclose(result.gp.inducing_points, expected.gp.inducing_points, rtol=1e-6)


def _keep(pair):
    return pair


def _count(index, shard, kept):
    return kept, len(shard[1])
