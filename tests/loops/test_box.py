import numpy as np
import pytest
import torch
from torch.testing import assert_close

from streamgp.checks import to_double
from streamgp.errors import ArgumentTypeError, DTypeError, ShapeError, ValueRangeError
from streamgp.loops.cube_space import Box
from streamgp.testing.tolerances import tolerance

PAIRS = [(-5.0, 10.0), (0.0, 15.0), (100, 101)]


def test_a_list_of_pairs_and_a_tensor_of_two_rows_give_the_same_box():
    first, second = Box.from_bounds(PAIRS), Box.from_bounds(torch.tensor(PAIRS).mT)
    assert_close(first.lower, second.lower)
    assert_close(first.upper, second.upper)
    assert first.lower.tolist() == [-5.0, 0.0, 100.0]


def test_points_go_to_the_unit_cube_and_back(rng):
    box = Box.from_bounds(PAIRS)
    unit = torch.rand(20, 3, generator=rng, dtype=torch.float64)
    assert_close(box.read(box.show(unit)), unit, **tolerance(torch.float64))


def test_the_ends_of_the_cube_are_the_bounds_exactly():
    box = Box.from_bounds([(0.1, 0.7), (-1e-7, 3e5)])
    assert torch.equal(box.show(torch.ones(2, dtype=torch.float64)), box.upper)
    assert torch.equal(box.show(torch.zeros(2, dtype=torch.float64)), box.lower)


def test_points_may_be_arrays_lists_or_tensors_of_any_number_type():
    box = Box.from_bounds([(0, 4), (0, 4)])
    for X in ([[1, 2]], np.array([[1, 2]]), torch.tensor([[1, 2]]), torch.tensor([[1.0, 2.0]], requires_grad=True)):
        unit = box.read(X)
        assert unit.tolist() == [[0.25, 0.5]]
        assert not unit.requires_grad


def test_a_point_that_rounding_moved_past_the_edge_is_put_on_it():
    box = Box.from_bounds([(0.0, 1.0)])
    assert box.read([[1.0 + 1e-9]]).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("bounds", "error", "sentence"),
    [
        (torch.zeros(3, 3), ShapeError, r"shape \(2, d\), lower ends in the first row .* but has shape \(3, 3\)"),
        ([(0.0, 1.0, 2.0)], ShapeError, r"one pair \(lower, upper\) for each dimension, but has shape \(1, 3\)"),
        ([], ShapeError, r"but has shape \(0,\)"),
        ("unit", ArgumentTypeError, "but is a str"),
        ([(0.0, 1.0), (2.0,)], DTypeError, "bounds is a list that cannot be read"),
        ([(0.0, 1.0), (2.0, 2.0)], ValueRangeError, "but dimension 1 goes from 2 to 2"),
        ([(0.0, 1.0), (-1e308, 1e308)], ValueRangeError, "distance of the bounds of dimension 1, .* overflows"),
        ({"heat": (0.0, 1.0)}, ArgumentTypeError, "parameters with names are searched by streamgp.Optimizer"),
        ([(0.0, float("inf"))], ValueRangeError, "bounds must be finite"),
    ],
)
def test_wrong_bounds_are_refused_with_a_sentence(bounds, error, sentence):
    with pytest.raises(error, match=sentence):
        Box.from_bounds(bounds)


@pytest.mark.parametrize(
    ("X", "error", "sentence"),
    [
        ([[0.5, 0.5]], ShapeError, r"but has shape \(1, 2\)"),
        ([[0.0, float("nan"), 100.0]], ValueRangeError, r"X must be finite, .* index \(0, 1\)"),
        ([["a", "b", "c"]], DTypeError, "X must be numbers"),
    ],
)
def test_wrong_points_are_refused_with_a_sentence(X, error, sentence):
    with pytest.raises(error, match=sentence):
        Box.from_bounds(PAIRS).read(X)


def test_what_is_read_is_a_copy():
    given = torch.zeros(2, 2, dtype=torch.float64)
    read = to_double(given, "X")
    given.add_(1.0)
    assert not read.any()


def test_a_single_point_may_be_a_row_of_numbers():
    assert Box.from_bounds(PAIRS).read([2.5, 7.5, 100.5]).tolist() == [[0.5, 0.5, 0.5]]


@pytest.mark.parametrize("bounds", [np.array([[0.0, 1.0], [2.0, 5.0], [3.0, 4.0]]), np.array([[0.0, 2, 3], [1, 5, 4]])])
def test_arrays_have_pairs_in_their_rows_or_are_laid_out_as_botorch_has_them(bounds):
    box = Box.from_bounds(bounds)
    assert box.lower.tolist() == [0.0, 2.0, 3.0]
    assert box.upper.tolist() == [1.0, 5.0, 4.0]


@pytest.mark.parametrize("bounds", [[(0.0, float("inf"))], [(float("nan"), 1.0)]])
def test_bounds_that_are_not_finite_are_refused_with_advice_on_bounds(bounds):
    with pytest.raises(ValueRangeError, match="Give the range in which points can be set"):
        Box.from_bounds(bounds)
