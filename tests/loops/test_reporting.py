"""What objects say of themselves: little, true, and no markup of others."""

import pytest
import torch

import streamgp as sg
from streamgp.loops import Best, ParetoSet

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def optimizer():
    space = {"heat": sg.Real(0, 10), HOSTILE: sg.Categorical([HOSTILE, "b"])}
    optimizer = sg.Optimizer(space, objectives=[sg.Objective(f"yield {HOSTILE}")], num_initial=3)
    optimizer.tell(optimizer.ask(5)[:4], [60.0, 71.0, 70.0, torch.nan])
    return optimizer


@pytest.mark.slow
def test_an_optimizer_says_what_it_knows(optimizer):
    assert repr(sg.Optimizer([(0.0, 1.0)])) == "Optimizer(1 parameter, 0 outcomes, 0 pending)"
    assert repr(optimizer) == "Optimizer(2 parameters, 4 outcomes, 1 failed, 1 pending, best observed 71)"
    best = optimizer.best()
    assert repr(optimizer).startswith("Optimizer(2 parameters, 4 outcomes, 1 failed, 1 pending, best 7")
    assert repr(optimizer).endswith(f"{best.mean:.1f} ± {best.std:.1f})") or "±" in repr(optimizer)
    assert "±" in repr(best)


def test_comparisons_and_trade_offs_are_counted():
    taste = sg.Optimizer([(0.0, 1.0)], likelihood="preference")
    taste.tell_comparison([[0.1]], [[0.3]])
    assert repr(taste) == "Optimizer(1 parameter, 1 comparisons, 0 pending)"
    both = sg.Optimizer([(0.0, 1.0)], objectives=[sg.Objective("a"), sg.Objective("b", maximize=False)])
    both.tell([[0.1], [0.2], [0.3]], [[1.0, 1.0], [2.0, 2.0], [1.0, 3.0]])
    assert repr(both) == "Optimizer(1 parameter, 3 outcomes, 0 pending, 2 best trade-offs)"


def test_notebooks_show_tables_in_which_every_text_is_escaped(optimizer):
    best = Best({HOSTILE: HOSTILE}, 1.0, 0.1, 0.5, 1.1, Best(torch.ones(2), 1.0, 0.1, 1.0, None))
    pareto = ParetoSet(
        [{HOSTILE: HOSTILE}], torch.ones(1, 2), torch.ones(1, 2), torch.ones(1), torch.ones(1, 2), (HOSTILE, "b")
    )
    for shown in (one._repr_html_() for one in (optimizer, best, pareto)):
        assert "<img" not in shown
        assert "<script" not in shown
        assert "&lt;img" in shown
    assert "<svg" in optimizer._repr_html_()
    assert repr(best) == (
        f"Best({HOSTILE} {HOSTILE}: 1.00 ± 0.10, feasible with 0.50, recommended Best([1, 1]: 1.00 ± 0.10))"
    )
    assert repr(pareto) == f"ParetoSet(1 point of 2 objectives: {HOSTILE}, b)"


def test_a_pool_learner_shows_its_pool():
    learner = sg.PoolLearner(torch.rand(7, 3))
    learner.tell([0, 2], [1.0, 2.0])
    assert "7 members with 3 inputs" in learner._repr_html_()
    assert "2 outcomes, 0 pending" in learner._repr_html_()


def test_plots_take_and_return_axes(optimizer):
    axes = optimizer.plot()
    assert optimizer.plot(axes) is axes
    pareto = ParetoSet(torch.ones(3, 1), torch.ones(3, 2), torch.ones(3, 2), torch.ones(3), torch.ones(3, 2))
    assert pareto.plot(axes) is axes
