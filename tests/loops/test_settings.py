import pytest

import streamgp as sg
from streamgp.acquisition import Search
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.loops.settings import Training, check_kernel, read_constraints, read_refit

BOX = [(0.0, 1.0), (0.0, 1.0)]


@pytest.mark.parametrize(("num_dims", "expected"), [(1, 4), (4, 10), (6, 10), (8, 10), (12, 14), (50, 30)])
def test_the_initial_design_grows_with_the_dimension_up_to_a_bound(num_dims, expected):
    assert sg.Optimizer([(0.0, 1.0)] * num_dims)._settings.num_initial == expected


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"acquisition": "ei"}, OptionError, "acquisition must be one of 'qkg', 'qnei', .* but is 'ei'"),
        ({"refit": "sometimes"}, OptionError, "refit must be one of 'auto', 'always', 'never', but is 'sometimes'"),
        ({"refit": 0}, ValueRangeError, "refit must be a whole number of at least 1"),
        ({"num_initial": 0}, ValueRangeError, "num_initial must be a whole number of at least 1"),
        ({"seed": -1}, ValueRangeError, "seed must be a whole number of at least 0"),
        ({"likelihood": "preference", "maximize": False}, UnsupportedError, "Swap winners and losers"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, error, sentence):
    with pytest.raises(error, match=sentence):
        sg.Optimizer(BOX, **options)


@pytest.mark.parametrize("acquisition", ["qucb", "gibbon", "lookahead_thompson"])
def test_an_acquisition_that_knows_no_constraints_names_those_that_do(acquisition):
    with pytest.raises(
        UnsupportedError, match=r"knows no constraints. Those that do are 'qkg', 'qnei', 'qei', 'multi_step'"
    ):
        sg.Optimizer(BOX, acquisition=acquisition, constraints=[sg.Constraint(upper=0.0)])


def test_comparisons_have_no_constraints():
    with pytest.raises(UnsupportedError, match="Comparisons cannot be combined with constraints"):
        sg.Optimizer(BOX, likelihood="preference", constraints=[sg.Constraint(upper=0.0)])


def test_the_search_refuses_numbers_that_are_none():
    with pytest.raises(ValueRangeError, match="num_restarts must be a whole number of at least 1"):
        Search(num_restarts=0)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: read_refit(0.5), OptionError, "or a whole number, but is 0.5"),
        (lambda: check_kernel("rbf", 2), ArgumentTypeError, "kernel must be a kernel of GPyTorch, but is a str"),
        (lambda: read_constraints([1.0]), ArgumentTypeError, "a list of streamgp.Constraint, but has a float"),
        (lambda: Training(beta=0.0), ValueRangeError, "beta"),
        (lambda: Training(num_starts=0), ValueRangeError, "num_starts"),
        (lambda: Training(max_iterations=0), ValueRangeError, "max_iterations"),
    ],
)
def test_values_of_the_wrong_kind_are_refused_with_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
