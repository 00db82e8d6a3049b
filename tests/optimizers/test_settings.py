import pytest
import torch

import streamgp as sg
from streamgp.errors import DTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.optimizers import Search
from streamgp.optimizers.settings import Settings

BOX = [(0.0, 1.0), (0.0, 1.0)]
DEFAULTS = {
    "likelihood": "gaussian",
    "maximize": True,
    "constraints": (),
    "acquisition": "qkg",
    "num_initial": None,
    "num_inducing": 100,
    "kernel": None,
    "refit": "auto",
    "search": None,
    "seed": 0,
}


@pytest.mark.parametrize(("num_dims", "expected"), [(1, 4), (6, 14), (50, 30)])
def test_the_initial_design_grows_with_the_dimension_up_to_a_bound(num_dims, expected):
    assert sg.Optimizer([(0.0, 1.0)] * num_dims)._settings.num_initial == expected


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"acquisition": "ei"}, OptionError, "acquisition must be one of 'qkg', 'qnei', .* but is 'ei'"),
        ({"refit": "sometimes"}, OptionError, "refit must be one of 'auto', 'always', 'never', but is 'sometimes'"),
        ({"refit": 0.5}, OptionError, "or a whole number, but is 0.5"),
        ({"refit": 0}, ValueRangeError, "refit must be a whole number of at least 1"),
        ({"maximize": 1}, DTypeError, "maximize must be True or False, but is 1"),
        ({"kernel": "rbf"}, DTypeError, "kernel must be a kernel of GPyTorch .* but is a str"),
        ({"search": 5}, DTypeError, r"Write search=Search\(num_restarts=10\)"),
        ({"num_initial": 0}, ValueRangeError, "num_initial must be a whole number of at least 1"),
        ({"num_inducing": 2.5}, ValueRangeError, "num_inducing must be a whole number"),
        ({"seed": -1}, ValueRangeError, "seed must be a whole number of at least 0"),
        ({"constraints": [1.0]}, DTypeError, r"a list of streamgp.Constraint, but has a float"),
        ({"likelihood": "preference", "maximize": False}, UnsupportedError, "Swap winners and losers"),
        (
            {"likelihood": "poisson", "maximize": False, "acquisition": "lts"},
            UnsupportedError,
            "cannot minimise Poisson",
        ),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, error, sentence):
    with pytest.raises(error, match=sentence):
        Settings.read(BOX, **(DEFAULTS | options))


@pytest.mark.parametrize("acquisition", ["qucb", "gibbon", "lts"])
def test_an_acquisition_that_knows_no_constraints_names_those_that_do(acquisition):
    with pytest.raises(UnsupportedError, match=f"{acquisition}.*Those that do are 'qkg', 'multi_step', 'qnei'"):
        sg.Optimizer(BOX, acquisition=acquisition, constraints=[sg.Constraint(upper=0.0)])


def test_comparisons_have_no_constraints():
    with pytest.raises(UnsupportedError, match="Comparisons cannot be combined with constraints"):
        sg.Optimizer(BOX, likelihood="preference", constraints=[sg.Constraint(upper=0.0)])


def test_the_search_refuses_numbers_that_are_none():
    with pytest.raises(ValueRangeError, match="num_restarts must be a whole number of at least 1"):
        Search(num_restarts=0)


def test_only_what_cannot_change_its_sign_has_a_weight():
    weights = {
        (name, maximize): sg.Optimizer(BOX, likelihood=name, maximize=maximize)._settings.weight
        for name in ("gaussian", "poisson")
        for maximize in (True, False)
    }
    assert [key for key, weight in weights.items() if weight < 0] == [("poisson", False)]
    assert torch.equal(sg.Optimizer(BOX)._settings.box.unit, torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double())
