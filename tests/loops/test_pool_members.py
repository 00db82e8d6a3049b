import numpy as np
import pandas as pd
import pytest
import torch

from streamgp.errors import ShapeError, ValueRangeError
from streamgp.loops.pool_space import in_order, input_names, positions, read_costs, read_names

NAMES = ("north", "south", "west")


def test_members_are_found_by_their_names():
    assert positions(["west", "north"], NAMES) == [2, 0]
    index = torch.tensor([1, 2])
    assert positions(index, NAMES) is index
    assert positions([1, 2], NAMES) == [1, 2]


@pytest.mark.parametrize(
    "told", [[2, 3], np.array([2, 3]), pd.Series([2, 3], index=[7, 8]), torch.tensor([2, 3]), ["2", "3"], [2, "3"]]
)
def test_where_names_are_numbers_a_number_is_a_name(told):
    assert positions(told, ("1", "2", "3")) == [1, 2]
    with pytest.raises(ValueRangeError, match="no member '0' in the pool"):
        positions([0], ("1", "2", "3"))
    with pytest.raises(ValueRangeError, match="no member '7' in the pool"):
        positions([7], ("007", "011"))


@pytest.mark.parametrize(
    ("error", "sentence", "call"),
    [
        (ShapeError, "one for each of the 3 members, but has 2", lambda: read_names(["a", "b"], 3)),
        (ValueRangeError, "'a' comes more than once", lambda: read_names(["a", "b", "a"], 3)),
        (ShapeError, "costs must have shape", lambda: read_costs([1.0, 2.0], 3)),
        (ValueRangeError, "costs must be positive, but the least is 0", lambda: read_costs([1.0, 0.0, 2.0], 3)),
        (ValueRangeError, "no member 'nort' in the pool. Did you mean 'north'", lambda: positions(["nort"], NAMES)),
        (TypeError, "have numbers and no names, but 'west' came", lambda: positions(["west"], None)),
    ],
)
def test_what_makes_no_sense_is_refused(error, sentence, call):
    with pytest.raises(error, match=sentence):
        call()


def test_a_table_without_names_is_read_in_its_order():
    table = pd.DataFrame([[1.0, 2.0]])
    assert input_names(table) is None
    assert in_order(table, ("lng", "lat")) is table
    named = table.set_axis(["lat", "lng"], axis=1)
    assert in_order(named, None) is named
    assert in_order(named, ("lng", "lat")).to_numpy().tolist() == [[2.0, 1.0]]


def test_names_and_costs_are_kept():
    assert read_names([1, "b"], 2) == ("1", "b")
    assert read_costs([1, 2.5], 2).tolist() == [1.0, 2.5]
