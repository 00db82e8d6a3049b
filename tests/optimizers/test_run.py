"""A function is evaluated by workers that do not wait for each other, and a run that was killed goes on."""

import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
import torch

import streamgp as sg
from streamgp.errors import ArgumentTypeError, OptionError, StreamGPWarning, ValueRangeError

SPACE = {"x": sg.Real(0.0, 1.0), "y": sg.Real(0.0, 1.0)}


def hill(point):
    return -((point["x"] - 0.3) ** 2) - (point["y"] - 0.6) ** 2


def make(num_initial=4, **options):
    return sg.Optimizer(SPACE, num_initial=num_initial, acquisition="thompson", **options)


def test_one_worker_does_what_none_does():
    alone, worker = make(), make()
    alone.run(hill, 6, progress=False)
    worker.run(hill, 6, progress=False, workers=1)
    assert alone.X == worker.X
    assert torch.equal(alone.y, worker.y)


def test_twenty_workers_evaluate_different_points_at_once_and_all_are_told():
    optimizer, barrier, seen = make(20), threading.Barrier(20), []

    def together(point):
        seen.append(dict(point))
        if len(seen) <= 20:
            barrier.wait(30)  # which fails unless all twenty are evaluated at the same time
        return hill(point)

    optimizer.run(together, 23, workers=20, progress=False)
    assert len(optimizer.pending) == 0
    assert len({tuple(one.values()) for one in seen}) == 23
    assert sorted(map(str, optimizer.X)) == sorted(map(str, seen))
    for point, y in zip(optimizer.X, optimizer.y.flatten().tolist(), strict=True):
        assert y == pytest.approx(hill(point))


def test_the_next_point_is_asked_for_while_all_others_are_pending():
    optimizer, released, pending, begun = make(3), threading.Event(), [], []

    def slow(point):
        begun.append(point)
        if begun[0] is point:
            assert released.wait(30)
        return hill(point)

    def look(one):
        pending.append(len(one.pending))
        released.set()

    optimizer.run(slow, 5, workers=2, callback=look, progress=False)
    assert max(pending) == 1


@pytest.mark.slow
def test_processes_evaluate_and_failures_come_back():
    optimizer = make()
    with ProcessPoolExecutor(1) as client, pytest.warns(StreamGPWarning, match="failed with RuntimeError: too far"):
        optimizer.run(hill_or_failure, 4, client=client, progress=False)
    assert 0 < int(optimizer.y.isnan().sum()) < 4


def hill_or_failure(point):
    if point["x"] > 0.5:
        raise RuntimeError("too far")
    return hill(point)


def test_a_client_that_evaluates_nothing_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"an executor of concurrent.futures or a client of Dask, but is a str"):
        make().run(hill, 2, client="cluster", progress=False)
    with pytest.raises(ValueRangeError, match="workers must be a whole number of at least 1"):
        make().run(hill, 2, workers=0, progress=False)


def test_dask_evaluates():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        optimizer = make()
        optimizer.run(hill, 5, client=client, progress=False)
    assert len(optimizer.y) == 5


def test_time_and_callbacks_end_a_run():
    optimizer = make(8)
    optimizer.run(lambda point: time.sleep(0.05) or hill(point), 8, time_limit=0.01, workers=2, progress=False)
    assert len(optimizer.y) == 2
    assert not len(optimizer.pending)
    optimizer.run(hill, 8, callback=lambda one: len(one.y) >= 4, q=4, progress=False)
    assert len(optimizer.y) == 4
    assert not len(optimizer.pending)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("workers", [None, 2])
def test_a_run_that_was_killed_goes_on_with_what_was_being_evaluated(tmp_path, workers):
    path, evaluated = tmp_path / "run.sgo", []

    def dying(point):
        if len(evaluated) >= 5:
            raise Killed
        evaluated.append(dict(point))
        return hill(point)

    with pytest.raises(Killed):
        make().run(dying, 8, checkpoint=path, workers=workers, progress=False)
    left = sg.Optimizer.load(path)
    assert len(left.y) == 5 - (0 if workers is None else 5 - len(left.y))
    assert len(left.pending) >= 1
    waiting, resumed, again = left.pending, make(), []
    resumed.run(lambda point: again.append(dict(point)) or hill(point), 8, checkpoint=path, progress=False)
    assert again[: len(waiting)] == waiting
    assert len(resumed.y) == 8
    assert resumed.X[: len(left.X)] == left.X
    # A run that is finished only says what it found.
    assert make().run(hill, 8, checkpoint=path, progress=False).X == resumed.best().X
    if workers is None:
        straight = make()
        straight.run(hill, 8, progress=False)
        assert straight.X == resumed.X


def test_a_checkpoint_of_another_search_is_refused(tmp_path):
    make().run(hill, 2, checkpoint=tmp_path / "run.sgo", progress=False)
    for other in (make(seed=1), sg.Optimizer([(0.0, 1.0)])):
        with pytest.raises(OptionError, match="holds another search than this"):
            other.run(hill, 2, checkpoint=tmp_path / "run.sgo", progress=False)
    ahead = make()
    ahead.tell({"x": 0.5, "y": 0.5}, 1.0)
    with pytest.raises(OptionError, match="lacks what was told here"):
        ahead.run(hill, 2, checkpoint=tmp_path / "run.sgo", progress=False)


def test_the_end_of_a_run_says_what_more_evaluations_may_gain(capsys):
    make().run(hill, 6)
    assert "All that is left to gain is about" in " ".join(capsys.readouterr().out.split())


def test_executors_of_the_user_stay_open():
    with ThreadPoolExecutor(2) as client:
        make().run(hill, 4, client=client, progress=False)
        assert client.submit(int, "3").result() == 3
