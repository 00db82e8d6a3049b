"""Objects that go through pools of processes: the sender's copy and the receiver's answer as before."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing.reduction import ForkingPickler
from operator import methodcaller
from typing import Any

import numpy as np
import pytest
import torch

import streamgp as sg
from streamgp.streams import StreamLearner, StreamOptions
from streamgp.streams.keyed import KeyedLearner
from streamgp.testing.tolerances import judgement, within

METHODS = ["fork", "spawn"] if hasattr(os, "fork") else ["spawn"]
Case = tuple[Any, Callable[[Any], Any]]


def rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(5).random((n, 2))
    return X, np.sin(6 * X[:, 0]) + X[:, 1]


@cache
def fitted() -> Any:
    X, y = (torch.from_numpy(each) for each in rows())
    return sg.fit(X, y, num_inducing=8, max_iterations=5)


def told() -> Any:
    X, y = rows(6)
    optimizer = sg.Optimizer([(0.0, 1.0), (0.0, 1.0)], seed=1)
    return optimizer.tell(X, y) or optimizer


def labelled() -> Any:
    X, y = rows(40)
    learner = sg.PoolLearner(X, likelihood="bernoulli", seed=1)
    chosen = np.arange(0, 40, 4)
    return learner.tell(chosen, y[chosen] > 1.0) or learner


def streamed(kind: Any, **options: Any) -> Any:
    X, y = rows()
    targets = y if "Regressor" in kind.__name__ else np.where(y > 1.0, "high", "low")
    return kind(warmup=20, refit="never", **options).partial_fit(X, targets)


def in_river(name: str) -> Any:
    kind = getattr(pytest.importorskip("streamgp.integrations.river"), name)
    model = kind(warmup=20, refit="never")
    for x, y in zip(*rows(), strict=True):
        features = {"a": float(x[0]), "b": float(x[1])}
        target: Any = {"low": y, "high": 2 * y} if "Multi" in name else bool(y > 1.0) if "Class" in name else float(y)
        model.learn_one(features, target)
    return model


def online() -> Any:
    X, y = (torch.from_numpy(each) for each in rows())
    return sg.OnlineGP.fit(X, y.unsqueeze(-1), num_inducing=8, max_iterations=5)


def learned() -> Any:
    learner = StreamLearner(2, StreamOptions(warmup=20, refit="never"))
    learner.learn(*rows())
    return learner


def keyed() -> Any:
    X, y = rows()
    return KeyedLearner.from_fit(fitted()).learn(["a", "b"] * 30, X, y)


def several() -> Any:
    X, y = (torch.from_numpy(each) for each in rows())
    options: dict[str, Any] = {"num_inducing": 8, "outputs": "icm", "max_iterations": 5}
    return sg.fit(X[:20], torch.stack([y, -y], -1)[:20], **options).gp


def asked(X: Any) -> Callable[[Any], Any]:
    return methodcaller("predict", X)


def cases() -> dict[str, Callable[[], Case]]:
    X, y = rows(5)
    T = torch.from_numpy(X)
    one, inputs = {"a": 0.3, "b": 0.8}, asked(X)
    return {
        "SparseGP": lambda: (fitted().gp, asked(T)),
        "ConditionedGP": lambda: (fitted().gp.condition(T, torch.from_numpy(y), noise_variance=0.1), asked(T)),
        "MultiOutputGP": lambda: (several(), asked(T)),
        "FitResult": lambda: (fitted(), asked(T)),
        "OnlineGP": lambda: (online(), methodcaller("posterior", T)),
        "Optimizer": lambda: (told(), inputs),
        "PoolLearner": lambda: (labelled(), methodcaller("predict")),
        "StreamingGPRegressor": lambda: (streamed(sg.StreamingGPRegressor), inputs),
        "StreamingGPRegressor, forgetting": lambda: (streamed(sg.StreamingGPRegressor, half_life=30.0), inputs),
        "StreamingGPClassifier": lambda: (streamed(sg.StreamingGPClassifier), methodcaller("predict_proba", X)),
        "StreamLearner": lambda: (learned(), inputs),
        "KeyedLearner": lambda: (keyed(), methodcaller("predict", ["a"] * 5, X)),
        "river regressor": lambda: (in_river("StreamingGPRegressor"), methodcaller("predict_one", one)),
        "river classifier": lambda: (in_river("StreamingGPClassifier"), methodcaller("predict_proba_one", one)),
        "river targets": lambda: (in_river("StreamingGPMultiTargetRegressor"), methodcaller("predict_one", one)),
    }


def numbers(answer: Any) -> list[float]:
    """All numbers of an answer, whatever it is made of."""
    if isinstance(answer, dict):
        return [number for each in answer.values() for number in numbers(each)]
    if isinstance(answer, torch.Tensor | np.ndarray | float):
        return [float(each) for each in np.asarray(answer, dtype=float).ravel()]
    for spread in ("variance", "std"):
        if hasattr(answer, "mean") and hasattr(answer, spread):
            return [*numbers(answer.mean), *numbers(getattr(answer, spread))]
    return [number for each in answer for number in numbers(each)]


def churn() -> list[np.ndarray]:
    """Use memory that was given back, for anyone who still looks into it."""
    return [np.full(size, np.nan) for size in (16, 64, 400, 900, 4000, 10_000) for _ in range(50)]


@pytest.fixture(scope="module", params=METHODS)
def pool(request: pytest.FixtureRequest) -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(request.param)) as executor:
        yield executor


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_an_object_that_is_sent_to_a_process_answers_there_and_here_as_before(name, pool):
    value, ask = cases()[name]()
    before = numbers(ask(value))
    assert np.isfinite(before).all()
    there = numbers(pool.submit(ask, value).result(timeout=120))
    kept = churn()
    assert there == pytest.approx(before, **within(judgement(relative=1e-12)))
    assert numbers(ask(value)) == before
    del kept


@pytest.mark.parametrize("kind", [sg.StreamingGPRegressor, sg.StreamingGPClassifier])
def test_a_stream_that_was_packed_for_a_process_goes_on_learning_as_if_it_had_not(kind):
    (X, y), models = rows(), [streamed(kind), streamed(kind)]
    targets = y if kind is sg.StreamingGPRegressor else np.where(y > 1.0, "high", "low")
    for x, target in zip(X, targets, strict=True):
        packed = ForkingPickler.dumps(models[0])
        kept = churn()
        for model in models:
            model.partial_fit(x[None], [target])
        del packed, kept
    ask = methodcaller("predict" if kind is sg.StreamingGPRegressor else "predict_proba", X)
    np.testing.assert_array_equal(*map(ask, models))


class Detector:
    """A detector of changes that takes until it is let go."""

    entered, let_go = threading.Event(), threading.Event()
    drift_detected = False

    def update(self, value: float) -> None:
        Detector.entered.set()
        Detector.let_go.wait(60)


@pytest.mark.skipif("fork" not in METHODS, reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_of_a_fork_learns_although_a_thread_of_its_parent_was_learning():
    model = streamed(sg.StreamingGPRegressor, drift_detector=Detector())
    thread = threading.Thread(target=model.partial_fit, args=([[0.5, 0.5]], [1.0]))
    thread.start()
    assert Detector.entered.wait(60)
    child = os.fork()
    if not child:  # which leaves without the clean-up of the tests
        signal.alarm(30)
        Detector.let_go.set()
        model.partial_fit([[0.2, 0.2]], [0.5])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    Detector.let_go.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
