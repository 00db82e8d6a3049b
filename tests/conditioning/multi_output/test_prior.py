"""Kernels, mixing and inducing points of several outputs, as users give them."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

import streamgp as sg
from streamgp.conditioning.multi_output.prior import latent_rows, prior_modules, read_points
from streamgp.errors import DTypeError, ShapeError, ValueRangeError


def test_one_set_of_points_serves_all_latent_functions():
    Z = torch.rand(4, 2)
    rows = latent_rows(read_points(Z), 3)
    assert torch.equal(rows[:, :2], Z.repeat(3, 1))
    assert rows[:, 2].tolist() == [-1.0] * 4 + [-2.0] * 4 + [-3.0] * 4


def test_each_latent_function_may_have_points_of_its_own():
    sets = [torch.rand(4, 2), torch.rand(3, 2)]
    rows = latent_rows(read_points(sets), 2)
    assert torch.equal(rows[:, :2], torch.cat(sets))
    assert rows[:, 2].tolist() == [-1.0] * 4 + [-2.0] * 3


def test_rows_of_numbers_are_one_set():
    (points,) = read_points([[0.0, 1.0], [2.0, 3.0]])
    assert points.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    first, second = read_points([[[0.0], [1.0]], [[2.0]]])
    assert first.tolist() == [[0.0], [1.0]]
    assert second.tolist() == [[2.0]]


def test_leading_axes_of_sets_broadcast():
    assert latent_rows([torch.rand(3, 4, 2), torch.rand(5, 2)], 2).shape == (3, 9, 3)


def test_kernels_and_means_are_copied_in_the_kind_of_the_inputs():
    mixing = torch.rand(3, 2, dtype=torch.float64)
    kernel, mean = prior_modules(
        [RBFKernel(), MaternKernel()], torch.rand(4, 2, dtype=torch.float64), mixing=mixing, mean=[1.0, 2.0, 3.0]
    )
    assert torch.equal(kernel.mixing, mixing)
    assert mean.constants.dtype == torch.float64
    assert mean.constants.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("points", "error", "sentence"),
    [
        ([], ShapeError, r"must have shape \(..., m, 0\) with at least one point"),
        (3.0, ShapeError, r"one has shape \(\)"),
        (torch.rand(4), ShapeError, r"one has shape \(4,\)"),
        ([torch.rand(4, 2), torch.rand(4, 3)], ShapeError, r"must have shape \(..., m, 2\).*one has shape \(4, 3\)"),
        (torch.full((4, 2), torch.nan), ValueRangeError, "inducing_points must be finite"),
        ("pivoted", DTypeError, "inducing_points must be numbers"),
    ],
)
def test_bad_points_get_a_sentence(points, error, sentence):
    with pytest.raises(error, match=sentence):
        sg.MultiOutputGP.from_prior(RBFKernel(), points, mixing=[[1.0], [2.0]])


@pytest.mark.parametrize(
    ("mixing", "mean", "sentence"),
    [
        ([[1.0], [torch.nan]], None, "mixing must be finite"),
        ([[1.0], [2.0]], [torch.inf, 0.0], "mean must be finite"),
    ],
)
def test_priors_are_finite(mixing, mean, sentence):
    with pytest.raises(ValueRangeError, match=sentence):
        sg.MultiOutputGP.from_prior(RBFKernel(), torch.rand(4, 2), mixing=mixing, mean=mean)


def test_as_many_sets_as_latent_functions():
    Z = torch.rand(4, 2)
    with pytest.raises(ShapeError, match=r"for all 2 latent functions .* or one for each, but there are 3"):
        latent_rows([Z, Z, Z], 2)
