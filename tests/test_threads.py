from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import streamgp as sg
from streamgp.threads import limit_threads


@pytest.fixture(autouse=True)
def two_threads():
    num_before = torch.get_num_threads()
    torch.set_num_threads(2)
    with threadpool_limits(limits=2, user_api="blas"):
        yield
    torch.set_num_threads(num_before)


def openblas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["internal_api"] == "openblas"}


def test_openblas_has_one_thread_within_and_as_many_as_before_after():
    before = openblas_threads()
    with limit_threads():
        assert openblas_threads() == {1}
        with limit_threads():
            assert openblas_threads() == {1}
        assert openblas_threads() == {1}
    assert openblas_threads() == before


def test_torch_has_one_thread_for_small_work_and_all_for_large():
    with limit_threads(1e3):
        assert torch.get_num_threads() == 1
        with limit_threads(1e12):
            assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with limit_threads(1e12):
        assert torch.get_num_threads() == 2


def test_limits_are_lifted_after_an_error():
    before = openblas_threads()
    with pytest.raises(ZeroDivisionError), limit_threads():
        raise ZeroDivisionError
    assert openblas_threads() == before
    assert torch.get_num_threads() == 2


def test_the_last_of_several_threads_lifts_the_limit():
    before, barrier = openblas_threads(), Barrier(4)

    def enter(_: int) -> set[int]:
        with limit_threads():
            barrier.wait()
            seen = openblas_threads()
            barrier.wait()
            return seen

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(enter, range(4))) == [{1}] * 4
    assert openblas_threads() == before


def test_a_fit_leaves_the_threads_of_its_user_as_they_are():
    before, seen = openblas_threads(), []
    X = np.random.default_rng(0).uniform(size=(20, 1))
    sg.fit(X, np.sin(X[:, 0]), num_inducing=5, max_iterations=2, callback=lambda _: seen.append(openblas_threads()))
    assert seen
    assert seen[0] == {1}
    assert openblas_threads() == before
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(("num_told", "num_threads"), [(6, 1), (400, 2)])
def test_a_suggestion_uses_one_thread_of_torch_while_there_is_little_data(monkeypatch, num_told, num_threads):
    seen = []

    def suggest(state, settings, q):
        seen.append((torch.get_num_threads(), openblas_threads()))
        return state, torch.zeros(q, 2, dtype=torch.float64)

    monkeypatch.setattr("streamgp.loops.loop.suggest", suggest)
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2, seed=0)
    optimizer.tell(np.random.default_rng(0).uniform(size=(num_told, 2)), np.arange(float(num_told)))
    optimizer.ask()
    assert seen == [(num_threads, {1})]
    assert torch.get_num_threads() == 2
