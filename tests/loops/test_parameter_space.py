"""A search space is a unit cube whose valid points are those of its parameters' values."""

import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.models.deterministic import GenericDeterministicModel
from torch.testing import assert_close

from streamgp.acquisition import Search
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.loops import Box, Categorical, Integer, LinearConstraint, ParameterSpace, Real
from streamgp.testing.tolerances import judgement, tolerance, within

SEARCH_SPACE = {
    "rate": Real(1e-5, 1.0, log=True),
    "kind": Categorical(("a", "b", "c")),
    "layers": Integer(1, 4),
    "shift": Real(-1.0, 1.0),
}
SPACE = ParameterSpace(SEARCH_SPACE)
PARAMS = {"rate": 1e-3, "kind": "b", "layers": 3, "shift": 0.25}


def test_values_survive_their_point_and_other_parameters_are_left_out():
    point = torch.tensor(SPACE.encode({**PARAMS, "other": 7}), dtype=torch.float64)
    assert point.shape == (SPACE.num_dims,) == (6,)
    decoded = SPACE.decode(point)
    assert decoded.keys() == PARAMS.keys()
    assert decoded == {name: pytest.approx(v) if isinstance(v, float) else v for name, v in PARAMS.items()}


@pytest.mark.parametrize("batch_shape", [(), (5,), (2, 1, 3)])
def test_snapping_gives_the_point_of_the_same_values(rng, batch_shape):
    X = torch.rand(*batch_shape, 6, generator=rng, dtype=torch.float64)
    snapped = SPACE.inputs(X)
    assert snapped.shape == X.shape
    for before, after in zip(X.reshape(-1, 6), snapped.reshape(-1, 6), strict=True):
        values = SPACE.decode(before)
        assert_close(torch.tensor(SPACE.encode(values), dtype=torch.float64), after, **tolerance(torch.float64))


def test_gradients_reach_the_continuous_parameters_alone(rng):
    X = torch.rand(4, 6, generator=rng, dtype=torch.float64, requires_grad=True)
    SPACE.inputs(X).square().sum().backward()
    is_continuous = torch.tensor([True, False, False, False, False, True])
    assert ((X.grad != 0) == is_continuous).all()
    assert_close(X.grad[:, is_continuous], 2 * X.detach()[:, is_continuous], **tolerance(torch.float64))


def test_neighbors_are_valid_and_differ_in_one_discrete_parameter():
    point = torch.tensor(SPACE.encode(PARAMS), dtype=torch.float64)
    rows = SPACE.neighbors(point)
    assert_close(SPACE.inputs(rows), rows, **tolerance(torch.float64))
    here, others = SPACE.decode(point), [SPACE.decode(row) for row in rows]
    changes = [{name: v for name, v in other.items() if v != here[name]} for other in others]
    assert sorted(map(str, changes)) == sorted(
        map(str, [{"kind": "a"}, {"kind": "c"}, {"layers": 1}, {"layers": 2}, {"layers": 4}])
    )


def test_a_space_of_floats_is_continuous_and_has_no_neighbors():
    space = ParameterSpace({name: SEARCH_SPACE[name] for name in ("rate", "shift")})
    assert space.is_continuous
    assert not SPACE.is_continuous
    assert space.neighbors(torch.tensor([0.2, 0.4], dtype=torch.float64)).shape == (0, 2)


def test_all_points_of_a_finite_space_are_its_combinations_each_once():
    space = ParameterSpace({name: SEARCH_SPACE[name] for name in ("kind", "layers")})
    rows = space.all_points()
    assert space.num_points == len(rows) == 12
    assert {tuple(space.decode(row).values()) for row in rows} == {(k, n) for k in "abc" for n in (1, 2, 3, 4)}
    assert_close(space.inputs(rows), rows, **tolerance(torch.float64))
    assert SPACE.num_points == float("inf")
    with pytest.raises(UnsupportedError, match="more values than could be listed"):
        SPACE.all_points()


def test_points_are_read_from_all_that_people_have():
    expected = torch.tensor([SPACE.encode(PARAMS)], dtype=torch.float64)
    row = list(PARAMS.values())
    for given in (PARAMS, [PARAMS], [row], row):
        assert torch.equal(SPACE.read(given), expected)
    numbers = ParameterSpace({"a": Real(0, 1), "b": Real(0, 2)})
    for given in ([0.5, 1.0], torch.tensor([[0.5, 1.0]]), np.array([[0.5, 1.0]]), np.array([0.5, 1.0])):
        assert numbers.read(given).tolist() == [[0.5, 0.5]]


def test_a_table_of_pandas_is_read():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([PARAMS, PARAMS])
    assert torch.equal(SPACE.read(table), SPACE.read([PARAMS, PARAMS]))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: SPACE.read({"rate": 0.1}), OptionError, "needs a value of 'kind'"),
        (lambda: SPACE.read([[0.1, "a"]]), ShapeError, "must have 4 values in each row"),
        (lambda: SPACE.read("water"), ArgumentTypeError, "must be a dictionary, a list of them"),
        (lambda: SPACE.fixing({"color": 1}), OptionError, "fixed names 'color'"),
        (lambda: ParameterSpace({}), ValueRangeError, "at least one parameter"),
    ],
)
def test_wrong_points_and_spaces_are_refused_with_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def is_valid(space, points):
    return torch.allclose(space.inputs(points), points) and bool(((points >= 0) & (points <= 1)).all())


def test_designs_and_candidates_are_valid_points(rng):
    design = SPACE.design(50, num_initial=50, num_before=0, seed=1)
    assert is_valid(SPACE, design)
    assert torch.equal(SPACE.design(20, num_initial=50, num_before=30, seed=1), design[30:])
    candidates = SPACE.candidates(200, centers=design[:2], generator=rng)
    assert candidates.shape == (200, 6)
    assert is_valid(SPACE, candidates)


def test_what_is_fixed_stays_so(rng):
    space = SPACE.fixing({"kind": "c", "shift": 0.5})
    points = torch.cat(
        [
            space.design(20, num_initial=20, num_before=0, seed=1),
            space.candidates(50, centers=SPACE.read([PARAMS]), generator=rng),
            space.maximize(Toward([0.9] * 6), 2, SEARCH, seed=0),
        ]
    )
    assert {(one["kind"], one["shift"]) for one in space.show(points)} == {("c", 0.5)}


class Toward(AnalyticAcquisitionFunction):
    """Largest at a given point, and less so near pending ones."""

    def __init__(self, target):
        super().__init__(model=GenericDeterministicModel(lambda X: X[..., :1]))
        self.target, self.X_pending = torch.tensor(target, dtype=torch.float64), None

    def set_X_pending(self, X_pending=None):
        self.X_pending = X_pending

    def forward(self, X):
        value = -(X - self.target).square().sum((-1, -2))
        if self.X_pending is not None:
            value = value - (-100.0 * (X - self.X_pending).square().sum(-1).amin(-1)).exp()
        return value


SEARCH = Search(num_restarts=2, raw_samples=16, max_iterations=50)


def test_the_search_finds_the_best_valid_point_and_not_the_same_twice():
    target = [0.3, 0.1, 0.9, 0.2, 0.6, 0.8]
    points = SPACE.maximize(Toward(target), 2, SEARCH, seed=0)
    assert is_valid(SPACE, points)
    (first, second) = SPACE.show(points)
    assert (first["kind"], first["layers"]) == ("b", 3)
    assert points[0, [0, 5]].tolist() == pytest.approx([0.3, 0.8], **within(judgement(absolute=1e-3)))
    assert first != second


def test_small_finite_spaces_are_listed():
    space = ParameterSpace({"kind": Categorical(list("abc"))})
    assert space.show(space.maximize(Toward([0.0, 0.0, 1.0]), 1, SEARCH, seed=0)) == [{"kind": "c"}]


MIXTURE = ParameterSpace(
    {"a": Real(0.0, 1.0), "b": Real(0.0, 1.0), "c": Real(0.0, 2.0), "kind": Categorical(["x", "y"])},
    (
        LinearConstraint({"a": 1.0, "b": 1.0, "c": 1.0}, lower=1.0, upper=1.0),
        LinearConstraint({"a": 1.0, "b": -1.0}, upper=0.2),
    ),
)


def test_linear_constraints_are_kept_by_all_points(rng):
    design = MIXTURE.design(20, num_initial=20, num_before=0, seed=3)
    assert torch.equal(MIXTURE.design(5, num_initial=20, num_before=15, seed=3), design[15:])
    fixed = MIXTURE.fixing({"a": 0.25})
    points = torch.cat(
        [
            design,
            MIXTURE.candidates(40, centers=design[:2], generator=rng),
            MIXTURE.maximize(Toward([1.0, 0.0, 0.0, 1.0, 0.0]), 1, SEARCH, seed=0),
            fixed.design(5, num_initial=5, num_before=0, seed=0),
        ]
    )
    for one in MIXTURE.show(points):
        assert one["a"] + one["b"] + one["c"] == pytest.approx(1.0, **within(judgement(absolute=1e-5)))
        assert one["a"] - one["b"] <= 0.2 + 1e-5
    best = MIXTURE.show(points[60:61])[0]  # nearest to a = 1 where a - b <= 0.2 and c = 0 is not forced
    assert best["a"] == pytest.approx(0.6, **within(judgement(absolute=0.02)))


def test_mixtures_whose_sum_was_missed_are_read_and_projected():
    missed = MIXTURE.read([{"a": 0.4, "b": 0.4, "c": 0.19, "kind": "x"}, {"a": 1.0, "b": 1.0, "c": 1.0, "kind": "y"}])
    near = MIXTURE.project(missed)
    assert bool(MIXTURE.is_allowed(near).all())
    # The least change in the unit cube is along the weights there, of which that of c is two; kinds stay.
    expected = 0.01 / 6.0 * torch.tensor([1.0, 1.0, 2.0, 0.0, 0.0], dtype=torch.float64)
    assert_close(near[0] - missed[0], expected)
    assert torch.equal(near[1, 3:], missed[1, 3:])
    assert MIXTURE.project(near) is near


@pytest.mark.parametrize("fixed", [{"a": 0.8, "b": 0.1}, {"a": 0.4, "b": 0.4, "c": 0.4}])
def test_fixed_values_that_leave_no_point_within_the_constraints_are_refused(fixed):
    with pytest.raises(ValueRangeError, match="fixed values do not keep the linear constraints between parameters"):
        MIXTURE.fixing(fixed)
    assert MIXTURE.fixing({"a": 0.4, "b": 0.4, "c": 0.2}).num_points == 2


def test_suggestions_keep_an_inequality_as_a_user_would_check_it():
    space = ParameterSpace({"a": Real(0.0, 1.0), "b": Real(0.0, 1.0)}, (LinearConstraint({"a": 1, "b": 1}, upper=1),))
    for target in ([1.0, 1.0], [0.9, 0.4], [0.3, 1.0]):
        for fixed in ({}, {"a": 0.8}):
            point = space.fixing(fixed).maximize(Toward(target), 1, SEARCH, seed=0)
            (one,) = space.show(point)
            assert 0.99 < one["a"] + one["b"] <= 1.0


def test_constraints_that_cannot_be_kept_or_read_are_refused():
    space = ParameterSpace({"a": Real(0.0, 1.0), "b": Real(0.0, 1.0)}, (LinearConstraint({"a": 1, "b": 1}, lower=5),))
    with pytest.raises(ValueRangeError, match="No point keeps all linear constraints"):
        space.design(2, num_initial=2, num_before=0, seed=0)
    with pytest.raises(UnsupportedError, match="between Real parameters without steps or logarithms, but 'rate'"):
        ParameterSpace(SEARCH_SPACE, (LinearConstraint({"rate": 1.0}, upper=0.5),))
    with pytest.raises(OptionError, match="must have an upper or a lower bound"):
        LinearConstraint({"a": 1.0})


def test_a_told_point_takes_the_place_of_the_pending_one_that_was_rounded():
    pending = SPACE.read([PARAMS, {**PARAMS, "kind": "a"}])
    rounded = SPACE.read([{**PARAMS, "shift": 0.3}])
    assert torch.equal(SPACE.still_pending(pending, rounded), pending[1:])
    other = SPACE.read([{**PARAMS, "layers": 2}])
    assert len(SPACE.still_pending(pending, other)) == 2
    assert len(Box.from_bounds([(0.0, 1.0)]).still_pending(torch.tensor([[0.5]]), torch.tensor([[0.52]]))) == 0
