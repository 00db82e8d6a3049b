import pytest
import torch

import streamgp as sg
from streamgp.loops.abstract_parameter import AbstractParameter

PARAMETERS = {
    "real": (sg.Real(-2.0, 3.0), 0.5),
    "logarithm": (sg.Real(1e-3, 1e3, log=True), 0.01),
    "step": (sg.Real(0.0, 1.0, step=0.25), 0.75),
    "integer": (sg.Integer(1, 9), 4),
    "ordinal": (sg.Ordinal([1, 10, 100]), 10),
    "categorical": (sg.Categorical(["water", "ethanol", "acid"]), "acid"),
}


@pytest.fixture(params=PARAMETERS)
def one(request):
    return PARAMETERS[request.param]


def test_a_value_comes_back_from_its_columns(one):
    parameter, value = one
    assert isinstance(parameter, AbstractParameter)
    columns = torch.tensor(parameter.encode(value, "x"), dtype=torch.float64)
    assert columns.shape == (parameter.num_columns,)
    assert bool(((columns >= 0) & (columns <= 1)).all())
    assert parameter.decode(columns) == (pytest.approx(value) if isinstance(value, float) else value)
    assert torch.allclose(parameter.snap(columns), columns)


def test_discrete_values_are_listed_and_others_are_not(one, rng):
    parameter, _ = one
    if parameter.num_values is None:
        points = torch.rand(5, 1, generator=rng, dtype=torch.float64)
        assert torch.equal(parameter.snap(points), points)
        return
    listed = parameter.all_columns()
    assert listed.shape == (parameter.num_values, parameter.num_columns)
    assert torch.equal(parameter.snap(listed), listed)
    others = parameter.alternatives(listed[0])
    assert not bool((others == listed[0]).all(-1).any())
