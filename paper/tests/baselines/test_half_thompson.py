"""Half of a batch by Thompson sampling, half by qGIBBON."""

import warnings

import torch

import streamgp as sg
from paper.baselines.half_thompson import HalfThompson
from streamgp.acquisition import Gibbon, Search


def ask(q):
    optimizer = sg.Optimizer(
        [(0.0, 1.0)] * 2,
        acquisition=HalfThompson(32, 16),
        num_initial=4,
        num_inducing=6,
        search=Search(1, 4, 3),
        seed=0,
    )
    X = torch.rand(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    optimizer.tell(X, X.sum(-1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return optimizer.ask(q)


def test_the_second_half_has_the_first_pending(monkeypatch):
    seen = []
    propose = Gibbon.propose

    def watch(self, context, q, *, seed):
        seen.append((context.pending, q))
        return propose(self, context, q, seed=seed)

    monkeypatch.setattr(Gibbon, "propose", watch)
    X = ask(3)
    assert X.shape == (3, 2)
    assert ((X >= 0.0) & (X <= 1.0)).all()
    ((pending, count),) = seen
    assert torch.equal(pending, X[:2])
    assert count == 1


def test_a_single_point_is_drawn(monkeypatch):
    monkeypatch.setattr(Gibbon, "propose", None)
    assert ask(1).shape == (1, 2)
