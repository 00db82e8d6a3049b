"""Sobol indices equal those that are known in closed form."""

import math

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError
from streamgp.loops.importance import Importance, sobol_indices
from streamgp.testing.tolerances import judgement


def test_the_indices_of_ishigamis_function():
    a, b = 7.0, 0.1

    def ishigami(points):
        x, y, z = (2.0 * math.pi * points - math.pi).unbind(-1)
        return x.sin() + a * y.sin() ** 2 + b * z**4 * x.sin() + 1e3  # an offset changes nothing

    parts = {name: slice(j, j + 1) for j, name in enumerate("xyz")}
    first, total = sobol_indices(ishigami, parts, num_dims=3, num_points=4096)
    v_x, v_y = 0.5 * (1.0 + b * math.pi**4 / 5.0) ** 2, a**2 / 8.0
    v_xz = b**2 * math.pi**8 * (1.0 / 18.0 - 1.0 / 50.0)
    variances = torch.tensor([v_x, v_y, 0.0], dtype=torch.float64)
    both = torch.tensor([v_xz, 0.0, v_xz], dtype=torch.float64)
    # The error of a scrambled design of 2^12 points, well below that of random ones, which is 1/64.
    assert_close(first, variances / (v_x + v_y + v_xz), **judgement(absolute=8e-3))
    assert_close(total, (variances + both) / (v_x + v_y + v_xz), **judgement(absolute=8e-3))


@pytest.mark.parametrize("seed", range(5))
def test_nothing_explains_more_by_itself_than_with_others(seed):
    """Of a sum, where both are equal but for the error of the design."""
    parts = {str(j): slice(j, j + 1) for j in range(6)}
    first, total = sobol_indices(
        lambda points: (3.0 * points).sin().sum(-1), parts, num_dims=6, num_points=64, seed=seed
    )
    assert (first <= total).all()


def test_a_function_that_is_constant_has_no_importance():
    first, total = sobol_indices(
        lambda points: torch.full_like(points[:, 0], 5.0), {"x": slice(0, 1)}, num_dims=1, num_points=8
    )
    assert not first.any()
    assert not total.any()


@pytest.fixture(scope="module")
def optimizer():
    """Of an additive function: a line, a category with one good value of three, and a number without effect."""
    optimizer = sg.Optimizer(
        {"x": sg.Real(-1, 1), "kind": sg.Categorical(["a", "b", "c"]), "nothing": sg.Integer(0, 4)}, num_initial=4
    )
    generator = torch.Generator().manual_seed(0)
    rows = [
        {"x": float(2 * torch.rand((), generator=generator) - 1), "kind": "abc"[i % 3], "nothing": i % 5}
        for i in range(30)
    ]
    optimizer.tell(rows, [3.0 * row["x"] + 2.0 * (row["kind"] == "a") for row in rows])
    return optimizer


def test_the_indices_of_a_model_are_those_of_the_function_that_it_learned(optimizer):
    importance = optimizer.importance(num_points=512)
    variances = torch.tensor([9.0 / 3.0, 4.0 * 2.0 / 9.0, 0.0], dtype=torch.float64)
    assert importance.names == ("x", "kind", "nothing")
    assert_close(importance.first_order, variances / variances.sum(), **judgement(absolute=0.02))
    assert_close(importance.total, variances / variances.sum(), **judgement(absolute=0.02))


def test_importance_is_drawn_and_shown(optimizer):
    importance = Importance(("x", "<b>"), torch.tensor([0.2, 0.7]), torch.tensor([0.3, 0.8]))
    axes = importance.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["x", "<b>"]
    assert repr(importance) == "Importance(<b> 0.70 to 0.80, x 0.20 to 0.30)"
    assert "&lt;b&gt;" in importance._repr_html_()


def test_parameters_that_are_tied_have_no_indices():
    mixture = sg.Optimizer(
        {"a": sg.Real(0, 1), "b": sg.Real(0, 1)}, input_constraints=[sg.LinearConstraint({"a": 1, "b": 1}, upper=1)]
    )
    mixture.tell([{"a": 0.1, "b": 0.2}, {"a": 0.3, "b": 0.2}], [1.0, 2.0])
    with pytest.raises(UnsupportedError, match=r"linear constraints tie them. Use plot_slice"):
        mixture.importance()
