import math

import pytest
import torch

import streamgp as sg
from streamgp.errors import StreamGPWarning, ValueRangeError
from streamgp.loops.evaluation import run_loop

BOX = [(-1.0, 1.0)] * 2


class _Asked:
    def __init__(self):
        self.calls = []

    def ask(self, q=1):
        self.calls.append(("ask", q))
        return torch.arange(q, dtype=torch.float64).unsqueeze(-1)

    def tell(self, X, y):
        self.calls.append(("tell", len(X.reshape(-1, 1)), tuple(y.shape)))


@pytest.mark.parametrize(
    ("is_batch", "told"), [(True, [("tell", 3, (3,)), ("tell", 2, (2,))]), (False, [("tell", 1, (1, 1))] * 5)]
)
def test_a_budget_is_spent_in_batches(is_batch, told):
    loop = _Asked()
    run_loop(loop, float, 5, q=3, progress=False, is_batch=is_batch)
    assert [call for call in loop.calls if call[0] == "ask"] == [("ask", 3), ("ask", 2)]
    assert [call for call in loop.calls if call[0] == "tell"] == told


def test_trust_regions_run_a_function_that_sometimes_fails():
    def bowl(x):
        if x[0] > 0.7:
            raise RuntimeError("the reactor is too hot")
        return (x**2).sum() if x[1] < 0.8 else math.inf

    optimizer = sg.TurboOptimizer(BOX, maximize=False, num_initial=8, num_inducing=10)
    with pytest.warns(StreamGPWarning, match="too hot"):
        best = optimizer.run(bowl, 16, q=4, progress=False)
    assert len(optimizer.y) == 16
    assert optimizer.y.isnan().any()
    assert best.observed <= optimizer.y[optimizer.y.isfinite()].median().item()
    assert float((best.X**2).sum()) == pytest.approx(best.observed)


def test_a_budget_must_be_a_count():
    with pytest.raises(ValueRangeError, match="num_evaluations"):
        sg.TurboOptimizer(BOX).run(float, 0, progress=False)


def test_the_best_of_nothing_is_refused():
    with pytest.raises(ValueRangeError, match="Nothing is known yet"):
        sg.TurboOptimizer(BOX).best()
