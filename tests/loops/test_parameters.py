"""Each kind of parameter has its columns in the unit cube, and every value its own place."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from streamgp.errors import ArgumentTypeError, UnsupportedError, ValueRangeError
from streamgp.loops.parameters import Categorical, Integer, Ordinal, Real
from streamgp.testing.tolerances import judgement, rounding, tolerance, within

# Logarithms of bounds are up to ten.
SAME = within(rounding(torch.float64, condition=10.0))


DISCRETE = {
    "integers": (Integer(-3, 4), list(range(-3, 5))),
    "integers with a step": (Integer(3, 9, step=3), [3, 6, 9]),
    "integers by logarithm": (Integer(1, 50, log=True), list(range(1, 51))),
    "many integers": (Integer(0, 10**6), [0, 1, 17, 524_288, 10**6]),
    "floats with a step": (Real(-10.2, 10.2, step=0.1), [-10.2, -0.1, 0.3, 10.2]),
    "ordered values": (Ordinal(["low", "mid", "high"]), ["low", "mid", "high"]),
    "two categories": (Categorical((True, None)), [True, None]),
    "categories": (Categorical(("a", 1, 2.5, "b")), ["a", 1, 2.5, "b"]),
}


def columns_of(axis, value):
    return torch.tensor(axis.encode(value, "it"), dtype=torch.float64)


@pytest.mark.parametrize("name", DISCRETE)
def test_a_discrete_value_survives_its_columns_and_any_column_becomes_a_value(name, rng):
    axis, values = DISCRETE[name]
    for value in values:
        columns = columns_of(axis, value)
        assert columns.shape == (axis.num_columns,)
        assert_close(axis.snap(columns), columns, **tolerance(torch.float64))
        decoded = axis.decode(columns)
        assert decoded == pytest.approx(value, **SAME) if isinstance(value, float) else decoded == value
        assert type(decoded) is type(value)
    anywhere = torch.rand(200, axis.num_columns, generator=rng, dtype=torch.float64)
    snapped = axis.snap(anywhere)
    assert_close(axis.snap(snapped), snapped, **tolerance(torch.float64))
    for row, other in zip(anywhere, snapped, strict=True):
        value = axis.decode(row)
        assert value == axis.decode(other)
        assert axis.encode(value, "it") == pytest.approx(other.tolist(), **SAME)


@pytest.mark.parametrize("end", [0.0, 1.0])
@pytest.mark.parametrize("name", [name for name in DISCRETE if "categories" not in name and "ordered" not in name])
def test_the_ends_of_the_interval_are_the_ends_of_the_range(name, end):
    axis, _ = DISCRETE[name]
    wanted = axis.high if end else axis.low
    assert axis.decode(torch.tensor([end], dtype=torch.float64)) == pytest.approx(wanted, **SAME)


def test_equal_steps_have_equal_shares_of_the_interval():
    axis = Integer(2, 11, step=3)
    u = (torch.arange(400, dtype=torch.float64).unsqueeze(-1) + 0.5) / 400
    values = [axis.decode(one) for one in u]
    assert [values.count(v) for v in (2, 5, 8, 11)] == [100] * 4


def test_shares_of_integers_by_logarithm_are_those_of_optuna_s_random_sampler():
    axis = Integer(1, 8, log=True)
    u = (torch.arange(2000, dtype=torch.float64).unsqueeze(-1) + 0.5) / 2000
    values = [axis.decode(one) for one in u]
    for v in range(1, 9):
        share = math.log((v + 0.5) / (v - 0.5)) / math.log(8.5 / 0.5)
        assert values.count(v) / 2000 == pytest.approx(share, **within(judgement(absolute=1e-3)))


@pytest.mark.parametrize("axis", [Real(-2.0, 3.0), Real(1e-5, 10.0, log=True)], ids=["linear", "log"])
def test_a_float_survives_its_column_and_stays_in_its_range(axis):
    assert axis.num_values is None
    for u in (0.0, 0.3, 0.77, 1.0):
        value = axis.decode(torch.tensor([u], dtype=torch.float64))
        assert axis.low <= value <= axis.high
        assert axis.encode(value, "it") == [pytest.approx(u, **SAME)]
    assert len(axis.alternatives(torch.tensor([0.3], dtype=torch.float64))) == 0


def test_logarithms_are_spread_evenly():
    axis = Real(1e-4, 1.0, log=True)
    assert axis.decode(torch.tensor([0.5], dtype=torch.float64)) == pytest.approx(1e-2)


@pytest.mark.parametrize("name", DISCRETE)
def test_alternatives_are_other_values_each_once(name):
    axis, values = DISCRETE[name]
    for value in values[:2]:
        others = [axis.decode(row) for row in axis.alternatives(columns_of(axis, value))]
        assert len({str(one) for one in others}) == len(others)
        assert axis.decode(columns_of(axis, value)) not in others
        if len(values) <= 8 and name != "many integers" and "floats" not in name:
            assert len(others) == len(values) - 1


def test_of_many_values_those_at_doubling_distances_are_tried():
    axis = Integer(0, 1000)
    others = [axis.decode(row) for row in axis.alternatives(columns_of(axis, 600))]
    below = {600 - 2**k for k in range(10)}
    above = {600 + 2**k for k in range(9)}
    assert set(others) == below | above


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: Real(1.0, 1.0), ValueRangeError, "must be below the greatest, but it goes from 1 to 1"),
        (lambda: Real(0.0, 1.0, log=True), ValueRangeError, "logarithmic scale must be positive"),
        (lambda: Real(0.0, math.inf), ArgumentTypeError, "finite numbers"),
        (lambda: Real(0.0, 1.0, step=2.0), ValueRangeError, "fit into the range 0 to 1, but is 2"),
        (lambda: Categorical(["only"]), ValueRangeError, "at least two values"),
        (lambda: Categorical("water"), ArgumentTypeError, "takes a list of values"),
        (lambda: Real(0.0, 1.0).encode(1.5, "dose"), ValueRangeError, "'dose' must lie between 0 and 1, but is 1.5"),
        (lambda: Real(0.0, 1.0).encode("much", "dose"), ArgumentTypeError, "'dose' must be a number, but is 'much'"),
        (lambda: Categorical(["a", "b"]).encode("c", "kind"), ValueRangeError, "must be one of .* but is 'c'"),
        (lambda: Real(0.0, 1.0).all_columns(), UnsupportedError, "more values than could be listed"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


def test_categories_are_found_by_type_by_value_and_by_their_text():
    axis = Categorical((1, True, "2"))
    assert [axis.encode(value, "it").index(1.0) for value in (1, True, 1.0, 2)] == [0, 1, 0, 2]


def test_values_are_different():
    with pytest.raises(ValueRangeError, match="Categorical needs different values, but 'a' comes more than once"):
        Categorical(["a", "b", "a"])
    assert Categorical([1, True]).num_values == 2


@pytest.mark.parametrize(
    "parameter",
    [Real(0.0, 1.0), Real(1e-4, 1.0, log=True), Real(-40.0, 180.0), Real(1e-9, 1e9, log=True), Real(0.0, 1e-5)],
    ids=str,
)
def test_what_people_set_comes_back_as_they_wrote_it(parameter):
    inside = [v for v in (0.1, 0.3, 0.7, 1e-3, 2e-6, 37.2, 1.1e-7, 123_456.7) if parameter.low <= v <= parameter.high]
    assert inside
    for value in inside:
        assert parameter.decode(columns_of(parameter, value)) == value
    # A value that was shown has one place, however often it is told.
    for u in torch.linspace(0, 1, 101, dtype=torch.float64):
        shown = parameter.decode(u.reshape(1))
        assert parameter.decode(columns_of(parameter, shown)) == shown


def test_a_narrow_range_far_from_zero_keeps_its_digits():
    parameter = Real(1e6, 1e6 + 1e-3)
    values = [parameter.decode(torch.tensor([u], dtype=torch.float64)) for u in (0.25, 0.25 + 1e-5)]
    assert values[0] < values[1]


@pytest.mark.parametrize("value", [2.5, 1.4, 3.01])
def test_a_part_of_a_whole_number_is_refused(value):
    with pytest.raises(ValueRangeError, match=r"'stirrers' must be a whole number, but is .* Real with a step of 1"):
        Integer(1, 4).encode(value, "stirrers")
    assert Integer(1, 4).encode(2.0, "stirrers") == Integer(1, 4).encode(2, "stirrers")
    Real(1, 4, step=1).encode(value, "stirrers")  # as the sentence says


def test_a_range_too_wide_for_a_double_is_refused():
    with pytest.raises(ValueRangeError, match="finite width"):
        Real(-1e308, 1e308)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [(0, 10**20, r"up to 2 \*\* 53"), (-(10**20), 0, r"up to 2 \*\* 53")],
)
def test_ends_of_integers_that_are_too_large_are_refused(low, high, message):
    with pytest.raises(ValueRangeError, match=message):
        Integer(low, high)


def test_a_range_of_an_integer_must_be_numbers():
    given = SimpleNamespace(low="layers", high=0, log=False, step=1)  # annotations, which tests enforce, say so earlier
    with pytest.raises(ArgumentTypeError, match="must be finite numbers, but goes from 'layers' to 0"):
        Integer.__post_init__(given)


def test_a_step_that_no_double_could_count_is_refused():
    with pytest.raises(ValueRangeError, match="Leave it out"):
        Real(0, 1, step=1e-300)


POLARITY = {
    "water": [10.2, 18.0, 1.0],
    "ethanol": [5.2, 46.1, 1.0],
    "acetone": [5.1, 58.1, 1.0],
    "oil": [0.0, 900.0, 1.0],
}


def test_values_with_descriptors_are_near_to_what_is_alike():
    solvent = Categorical(list(POLARITY), descriptors=POLARITY)
    rows = torch.tensor([solvent.encode(name, "solvent") for name in POLARITY], dtype=torch.float64)
    assert solvent.num_columns == 2  # the third is the same for all
    assert rows.amin() == 0.0
    assert rows.amax() == 1.0
    assert torch.cdist(rows, rows).fill_diagonal_(9.0)[1].argmin() == 2
    for name, row in zip(POLARITY, rows, strict=True):
        assert solvent.decode(row + 0.01) == name
        assert torch.equal(solvent.snap(row + 0.01), row)
    assert len(solvent.alternatives(rows[0])) == 3
    retired = Categorical(list(POLARITY), ["acetone"], POLARITY)
    assert retired.decode(retired.settle(rows[2])) == "ethanol"
    assert retired.num_values == 3


@pytest.mark.parametrize(
    ("descriptors", "message"),
    [
        ({"a": [1.0]}, "Each value needs descriptors, but 'b' has none"),
        ([[1.0], [1.0]], "different descriptors, but 'a' and 'b'"),
        ([[1.0], [2.0], [3.0]], r"for each of the 2 values, but have shape \(3, 1\)"),
        ([[1.0], [float("nan")]], "descriptors must be finite"),
    ],
)
def test_descriptors_that_tell_nothing_are_refused(descriptors, message):
    with pytest.raises(ValueError, match=message):
        Categorical(["a", "b"], descriptors=descriptors)


def test_values_that_are_retired_are_told_and_not_set():
    solvent, flask = Categorical(["water", "oil", "air"], ["air"]), Ordinal([50, 100, 250], retired=[100])
    assert solvent.encode("air", "solvent", is_told=True) == [0.0, 0.0, 1.0]
    assert len(solvent.all_columns()) == len(flask.all_columns()) == 2
    with pytest.raises(ValueRangeError, match="'air' of the parameter 'solvent' is retired"):
        solvent.encode("air", "solvent")
    assert flask.decode(flask.settle(torch.tensor([0.5], dtype=torch.float64))) in (50, 250)
    with pytest.raises(ValueRangeError, match="needs a value that is not retired"):
        Ordinal([1, 2], retired=[1, 2])
    assert Ordinal([50, 250]).keeping([50, 100]).values == (50, 100, 250)
