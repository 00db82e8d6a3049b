"""Models of BoTorch's say what they know in a line, and in a table without scripts."""

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.likelihoods import Gaussian, Poisson
from streamgp.models import OnlineMultiTaskGP
from streamgp.models.posterior import describe_model, model_table

POINTS = torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1).repeat(1, 2)


def sparse_gp() -> sg.SparseGP:
    return sg.SparseGP.from_prior(ScaleKernel(RBFKernel()), POINTS)


def several_outputs() -> sg.MultiOutputGP:
    mixing = torch.ones(3, 1, dtype=torch.float64)
    return sg.MultiOutputGP.from_prior(RBFKernel(), POINTS, mixing=mixing)


def test_a_model_counts_what_it_has():
    assert repr(sg.OnlineGP(sparse_gp(), Gaussian(0.1))) == "OnlineGP(1 output, 5 inducing points, 2 inputs, Gaussian)"
    two = sg.OnlineGP([sparse_gp(), sparse_gp()], [Poisson(), None])
    assert repr(two) == "OnlineGP(2 outputs, 5 inducing points, 2 inputs, Poisson, no likelihood)"


def test_a_model_of_correlated_outputs_counts_them():
    model = sg.OnlineGP(several_outputs(), Gaussian(0.1))
    assert repr(model) == "OnlineMultiOutputGP(3 outputs, 5 inducing points, 2 inputs, Gaussian)"
    assert repr(model.subset_output([0])).startswith("OnlineMultiOutputGP(1 output, ")


def test_a_model_of_tasks_counts_them():
    model = OnlineMultiTaskGP(several_outputs(), 0.1, output_task=2)
    assert repr(model) == "OnlineMultiTaskGP(3 tasks, 5 inducing points, 2 inputs beside the task, task 2 by default)"


def test_a_batch_is_named():
    process = sg.SparseGP.from_prior(ScaleKernel(RBFKernel()), POINTS.expand(4, 5, 2)).process
    assert describe_model("Model", [process], [None], num_dims=2).endswith("no likelihood, batch (4,))")


@pytest.mark.parametrize(
    "make",
    [
        lambda: sg.OnlineGP(sparse_gp(), Gaussian(0.1)),
        lambda: sg.OnlineGP(several_outputs(), Gaussian(0.1)),
        lambda: OnlineMultiTaskGP(several_outputs(), 0.1),
        several_outputs,
    ],
)
def test_the_table_has_rows_and_no_scripts(make):
    shown = make()._repr_html_()
    assert shown.count("<tr>") >= 4
    assert "<script" not in shown


def test_texts_of_a_table_are_escaped():
    assert "<b>" not in model_table("<b>", [sparse_gp().process], [None], num_dims=2)
