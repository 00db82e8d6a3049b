"""What all loops share: threads, copies, predictions and models in the user's units."""

import copy
import pickle
import threading

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import Search, Thompson

BOX = [(-5.0, 10.0), (0.0, 15.0)]
SMALL = Search(num_restarts=1, raw_samples=8, max_iterations=3)


def told(make, num_told=8):
    loop = make()
    X = loop.ask(num_told)
    loop.tell(X, X.double().reshape(len(X), -1).sum(-1))
    return loop


LOOPS = {
    "optimizer": lambda: sg.Optimizer(BOX, acquisition=Thompson(50), num_initial=4, search=SMALL),
    "trust region": lambda: sg.TurboOptimizer(BOX, acquisition=Thompson(50), num_initial=4, num_inducing=10),
    "exact": lambda: sg.TurboOptimizer(BOX, acquisition=Thompson(50), num_initial=4, model="exact"),
    "pool": lambda: sg.PoolLearner(torch.arange(60.0).reshape(30, 2), num_initial=4),
}


@pytest.mark.parametrize("name", LOOPS)
def test_threads_get_different_points_and_lose_no_outcome(name):
    loop, asked, errors = LOOPS[name](), [], []
    gate = threading.Barrier(4)

    def work():
        try:
            gate.wait()
            for _ in range(3):
                X = loop.ask()
                asked.append(X)
                loop.tell(X, [0.5 * len(asked)])
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    assert len(torch.unique(torch.cat(asked), dim=0)) == 12
    assert len(loop.X) == 12
    assert len(loop.pending) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_the_model_and_predictions_are_in_the_users_units(name):
    loop = told(LOOPS[name])
    X = torch.arange(60.0, dtype=torch.float64).reshape(30, 2)[loop.X] if name == "pool" else loop.X
    prediction, posterior = loop.predict(X), loop.model().posterior(X)
    assert_close(posterior.mean.squeeze(-1).detach(), prediction.mean, rtol=1e-6, atol=1e-6)
    assert_close(posterior.variance.sqrt().squeeze(-1).detach(), prediction.std, rtol=1e-5, atol=1e-6)
    assert (prediction.mean - loop.y[:, 0]).abs().mean() < 0.3 * loop.y.std()
    best = loop.best()
    assert best.mean == pytest.approx(float(prediction.mean.max()), rel=1e-6)


@pytest.mark.parametrize("name", ["optimizer", "pool"])
def test_copies_and_pickles_go_on_as_the_original(name):
    loop = told(LOOPS[name])
    copies = [copy.copy(loop), copy.deepcopy(loop), pickle.loads(pickle.dumps(loop))]
    expected = loop.ask(2)
    for one in copies:
        assert torch.equal(one.ask(2), expected)


def test_a_single_point_may_be_told_by_its_numbers():
    loop = LOOPS["optimizer"]()
    loop.tell([1.0, 2.0], 70.0)
    assert loop.y.tolist() == [[70.0]]
    assert_close(loop.X, torch.tensor([[1.0, 2.0]], dtype=torch.float64))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_outcomes_of_any_size_can_be_told(size):
    loop = LOOPS["optimizer"]()
    X = loop.ask(8)
    loop.tell(X, size * X.sum(-1))
    assert loop.ask().isfinite().all()
    assert loop.best().mean == pytest.approx(float(loop.y.max()), rel=0.3)
