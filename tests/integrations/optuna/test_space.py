"""A search space is a unit cube whose valid points are those of its parameters' values."""

import pytest
import torch
from torch.testing import assert_close

from streamgp.errors import UnsupportedError
from streamgp.testing.tolerances import tolerance

distributions = pytest.importorskip("optuna.distributions", reason="needs the extra streamgp[optuna]")

from streamgp.integrations.optuna.space import SnapInputs, Space  # noqa: E402 # after the check for the extra

SEARCH_SPACE = {
    "rate": distributions.FloatDistribution(1e-5, 1.0, log=True),
    "kind": distributions.CategoricalDistribution(("a", "b", "c")),
    "layers": distributions.IntDistribution(1, 4),
    "shift": distributions.FloatDistribution(-1.0, 1.0),
}
SPACE = Space.read(SEARCH_SPACE)
PARAMS = {"rate": 1e-3, "kind": "b", "layers": 3, "shift": 0.25}


def test_values_survive_their_point_and_other_parameters_are_left_out():
    point = torch.tensor(SPACE.encode({**PARAMS, "other": 7}), dtype=torch.float64)
    assert point.shape == (SPACE.num_columns,) == (6,)
    decoded = SPACE.decode(point)
    assert decoded.keys() == PARAMS.keys()
    assert decoded == {name: pytest.approx(v) if isinstance(v, float) else v for name, v in PARAMS.items()}


@pytest.mark.parametrize("batch_shape", [(), (5,), (2, 1, 3)])
def test_snapping_gives_the_point_of_the_same_values(rng, batch_shape):
    X = torch.rand(*batch_shape, 6, generator=rng, dtype=torch.float64)
    snapped = SPACE.snap(X)
    assert snapped.shape == X.shape
    for before, after in zip(X.reshape(-1, 6), snapped.reshape(-1, 6), strict=True):
        values = SPACE.decode(before)
        assert_close(torch.tensor(SPACE.encode(values), dtype=torch.float64), after, **tolerance(torch.float64))


def test_gradients_reach_the_continuous_parameters_alone(rng):
    X = torch.rand(4, 6, generator=rng, dtype=torch.float64, requires_grad=True)
    SnapInputs(SPACE)(X).square().sum().backward()
    is_continuous = torch.tensor([True, False, False, False, False, True])
    assert ((X.grad != 0) == is_continuous).all()
    assert_close(X.grad[:, is_continuous], 2 * X.detach()[:, is_continuous], **tolerance(torch.float64))


def test_neighbors_are_valid_and_differ_in_one_discrete_parameter():
    point = torch.tensor(SPACE.encode(PARAMS), dtype=torch.float64)
    rows = SPACE.neighbors(point)
    assert_close(SPACE.snap(rows), rows, **tolerance(torch.float64))
    here, others = SPACE.decode(point), [SPACE.decode(row) for row in rows]
    changes = [{name: v for name, v in other.items() if v != here[name]} for other in others]
    assert sorted(map(str, changes)) == sorted(
        map(str, [{"kind": "a"}, {"kind": "c"}, {"layers": 1}, {"layers": 2}, {"layers": 4}])
    )


def test_a_space_of_floats_is_continuous_and_has_no_neighbors():
    space = Space.read({name: SEARCH_SPACE[name] for name in ("rate", "shift")})
    assert space.is_continuous
    assert not SPACE.is_continuous
    assert space.neighbors(torch.tensor([0.2, 0.4], dtype=torch.float64)).shape == (0, 2)


def test_all_points_of_a_finite_space_are_its_combinations_each_once():
    space = Space.read({name: SEARCH_SPACE[name] for name in ("kind", "layers")})
    rows = space.all_points()
    assert space.num_points == len(rows) == 12
    assert {tuple(space.decode(row).values()) for row in rows} == {(k, n) for k in "abc" for n in (1, 2, 3, 4)}
    assert_close(space.snap(rows), rows, **tolerance(torch.float64))
    assert SPACE.num_points == float("inf")
    with pytest.raises(UnsupportedError, match="more values than could be listed"):
        SPACE.all_points()
