import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.loops.linear_constraints import LinearConstraint, Polytope
from streamgp.testing.tolerances import tolerance

PARAMETERS = {"kind": sg.Categorical(["a", "b", "c"]), "x": sg.Real(-1.0, 3.0), "z": sg.Real(2.0, 4.0)}
MOST = sg.LinearConstraint({"x": 2.0, "z": -1.0}, upper=0.5, lower=-3.0)
SUM = sg.LinearConstraint({"x": 1.0, "z": 1.0}, lower=4.0, upper=4.0)


def columns_and_values(rng, n=200):
    u = torch.rand(n, 5, generator=rng, dtype=torch.float64)
    return u, -1.0 + 4.0 * u[:, 3], 2.0 + 2.0 * u[:, 4]


def test_constraints_on_columns_are_those_on_values(rng):
    u, x, z = columns_and_values(rng)
    total = 2.0 * x - z
    polytope = Polytope.read([MOST], PARAMETERS, 5)
    assert torch.equal(polytope.is_kept(u), (total <= 0.5) & (total >= -3.0))
    assert 0 < int(polytope.is_kept(u).sum()) < len(u)


def test_drawn_points_keep_the_constraints():
    free = torch.tensor([3, 4])
    for constraints in ([MOST], [SUM], [MOST, SUM]):
        polytope = Polytope.read(constraints, PARAMETERS, 5)
        points = torch.zeros(20, 5, dtype=torch.float64)
        points[:, free] = polytope.sample(20, free, seed=3, num_columns=5)
        assert bool(polytope.is_kept(points).all())
        assert len(points.unique(dim=0)) == 20


def test_with_a_value_fixed_the_others_make_up_the_sum():
    polytope = Polytope.read([SUM], PARAMETERS, 5).given({4: 0.5})  # z is 3
    drawn = polytope.sample(1, torch.tensor([3]), seed=0, num_columns=5)
    assert_close(-1.0 + 4.0 * drawn, torch.ones_like(drawn), **tolerance(torch.float64, scale=1e3))
    assert not Polytope.read([SUM], PARAMETERS, 5).given({3: 0.5, 4: 0.5})


def test_points_that_are_outside_by_rounding_are_pulled_within_and_others_stay(rng):
    u, _, z = columns_and_values(rng)
    polytope, center = Polytope.read([MOST], PARAMETERS, 5), torch.full((200, 5), 0.5, dtype=torch.float64)
    edge = u.clone()
    edge[:, 3] = (0.5 + z + 1e-6 - 2.0 * -1.0) / 8.0  # where 2 x - z is above 0.5 by a millionth
    pulled = polytope.pulled(edge, center)
    assert bool(polytope.is_kept(edge).all())
    assert bool((2.0 * (-1.0 + 4.0 * pulled[:, 3]) - (2.0 + 2.0 * pulled[:, 4]) <= 0.5).all())
    assert float((pulled - edge).abs().max()) <= 1e-5
    kept = u[polytope.is_kept(u)]
    assert torch.equal(polytope.pulled(kept, center[: len(kept)]), kept)


def test_without_constraints_every_point_is_kept(rng):
    polytope = Polytope.read([], PARAMETERS, 5)
    assert not polytope
    assert bool(polytope.is_kept(columns_and_values(rng)[0]).all())


@pytest.mark.parametrize(
    ("error", "sentence", "make"),
    [
        (TypeError, "numbers by the names of parameters", lambda: sg.LinearConstraint({}, upper=1.0)),
        (OptionError, "must have an upper or a lower bound", lambda: sg.LinearConstraint({"x": 1.0})),
        (ValueRangeError, "not above the upper", lambda: sg.LinearConstraint({"x": 1.0}, lower=2.0, upper=1.0)),
        (
            UnsupportedError,
            "'kind' is Categorical",
            lambda: Polytope.read([sg.LinearConstraint({"kind": 1.0}, upper=1.0)], PARAMETERS, 5),
        ),
        (
            UnsupportedError,
            "'w' is no parameter",
            lambda: Polytope.read([sg.LinearConstraint({"w": 1.0}, upper=1.0)], PARAMETERS, 5),
        ),
        (
            ValueRangeError,
            "No point keeps all linear constraints",
            lambda: Polytope.read([sg.LinearConstraint({"x": 1.0}, lower=9.0)], PARAMETERS, 5).sample(
                2, torch.tensor([3, 4]), seed=0, num_columns=5
            ),
        ),
    ],
)
def test_what_makes_no_sense_is_refused(error, sentence, make):
    with pytest.raises(error, match=sentence):
        make()


def test_weights_that_are_texts_are_refused():
    with pytest.raises(ArgumentTypeError, match="weights of a LinearConstraint are numbers by the names"):
        LinearConstraint({"a": "1"}, upper=1.0)
