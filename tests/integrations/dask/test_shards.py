import operator
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="needs the extra streamgp[dask]")

import dask.array  # noqa: E402

import streamgp as sg  # noqa: E402
from streamgp.errors import ClusterError  # noqa: E402
from streamgp.integrations.dask import DaskGPRegressor  # noqa: E402
from streamgp.integrations.dask.shards import DaskShards, cluster_errors  # noqa: E402
from streamgp.testing.tolerances import approximation, within  # noqa: E402


def pairs(num_shards=4):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40 * num_shards, 2))
    y = rng.poisson(np.exp(np.sin(5.0 * X[:, 0]))).astype(float)
    return [(X[i::num_shards], y[i::num_shards]) for i in range(num_shards)]


def put(client, num_shards, **options):
    return DaskShards(client, [client.submit(_keep, each, pure=False) for each in pairs(num_shards)], **options)


def _keep(pair):
    return pair


def _count(index, shard, kept):
    return len(shard[1])


def _sleep(index, shard, kept):
    time.sleep(1.0)


def _swell(index, shard, kept):
    raise MemoryError("no room for the features")


def test_steps_keep_on_the_workers_what_they_are_given(client):
    shards = put(client, 3)
    assert shards.run(lambda index, shard, kept: (index, len(shard[1])), is_first=True) == [40, 40, 40]
    assert shards.run(lambda index, shard, kept: (kept + 1, kept)) == [0, 1, 2]
    assert shards.ask(lambda index, shard, kept: kept) == [1, 2, 3]
    assert shards.run(lambda index, shard, kept: (kept, kept), is_first=True) == [None, None, None]


def test_answers_are_added_on_the_workers_in_the_order_of_the_shards(client):
    shards = put(client, 19)
    assert shards.ask(lambda index, shard, kept: [index], plus=operator.add) == [list(range(19))]
    assert shards.run(lambda index, shard, kept: (index, [-index]), is_first=True, plus=operator.add) == [
        [-index for index in range(19)]
    ]
    assert shards.ask(lambda index, shard, kept: kept) == list(range(19))


def test_a_step_that_fails_leaves_what_was_kept(client):
    shards = put(client, 2)
    shards.run(lambda index, shard, kept: (index, None), is_first=True)
    with pytest.raises(ClusterError, match=r"ran out of memory \(no room for the features\).*smaller chunks"):
        shards.run(_swell)
    assert shards.ask(lambda index, shard, kept: kept) == [0, 1]


def test_a_step_that_takes_too_long_is_given_up(client):
    shards = put(client, 1, time_limit=0.1)
    with pytest.raises(ClusterError, match=r"did not end within 0\.1 seconds"):
        shards.ask(_sleep)


def test_workers_lost_again_and_again_are_reported():
    killed = distributed.KilledWorker("task", last_worker=SimpleNamespace(address="tcp://1"), allowed_failures=3)
    with pytest.raises(ClusterError, match="Workers were lost again and again"), cluster_errors(1.0):
        raise killed


@pytest.fixture
def cluster():
    """One of its own, for those who break it."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster


def before_slopes(shards, function):
    """Call a function once sites were found and kept, before the first evaluation that needs them."""
    called = []

    def ask(question, **options):
        if type(question).__name__ == "_Slope" and not called:
            called.append(function())
        return DaskShards.ask(shards, question, **options)

    shards.ask = ask
    return called


@pytest.mark.slow
def test_a_worker_that_is_lost_changes_nothing(cluster):
    options = {"likelihood": "poisson", "num_inducing": 3, "max_iterations": 1}
    expected = sg.fit(pairs(2), map=map, **options)

    def lose_a_worker():
        worker = next(each for each in cluster.workers.values() if any("_first" in key for key in each.data))
        cluster.sync(worker.close, nanny=False, executor_wait=False)

    with distributed.Client(cluster) as client:
        shards = put(client, 2, time_limit=30.0)
        called = before_slopes(shards, lose_a_worker)
        result = sg.fit(shards, **options)
        assert called
        assert len(client.scheduler_info()["workers"]) == 1
    assert result.info.bound == pytest.approx(expected.info.bound, **within(approximation(1e-8, "iteration")))
    np.testing.assert_allclose(
        result.gp.inducing_points, expected.gp.inducing_points, **approximation(1e-6, "iteration")
    )


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_an_error_and_changes_nothing(cluster, monkeypatch):
    monkeypatch.setattr("streamgp.integrations.dask.shards.PATIENCE", 0.5)
    X, y = (dask.array.from_array(each, chunks=(20, 2)[: each.ndim]) for each in pairs(1)[0])
    with distributed.Client(cluster.scheduler_address) as client:
        model = DaskGPRegressor(client=client, num_inducing=3, max_iterations=1).fit(X, y)
        before = dict(vars(model))
        cluster.close()
        with pytest.raises(ClusterError, match="its scheduler went away"):
            model.fit(X, y)
        assert vars(model) == before


@pytest.mark.thorough
def test_a_worker_that_is_killed_changes_nothing(monkeypatch):
    # Processes of workers import this module to read what they are sent.
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    options = {"likelihood": "poisson", "num_inducing": 6, "max_iterations": 12}
    expected = sg.fit(pairs(), map=map, **options)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        shards = put(client, 4, time_limit=100.0)
        shards.ask(_count)
        victim = next(iter(cluster.workers.values())).pid
        called = before_slopes(shards, lambda: os.kill(victim, signal.SIGKILL))
        result = sg.fit(shards, **options)
        assert called
    assert result.info.bound == pytest.approx(expected.info.bound, **within(approximation(1e-8, "iteration")))
    np.testing.assert_allclose(
        result.gp.inducing_points, expected.gp.inducing_points, **approximation(1e-6, "iteration")
    )
