import pytest
import torch
from torch.testing import assert_close

from paper.baselines.cubic_interpolation import Grid, Weights
from streamgp.errors import ValueRangeError
from streamgp.testing.tolerances import tolerance


def dense(weights: Weights) -> torch.Tensor:
    matrix = weights.values.new_zeros(len(weights.values), weights.num_columns)
    return matrix.scatter_add(1, weights.columns, weights.values)


def test_quadratic_functions_are_interpolated_exactly_up_to_the_border(rng):
    X = torch.rand(40, 2, generator=rng, dtype=torch.float64)
    X[:4] = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.3]])

    def f(x):
        return 1.0 + x[:, 0] - 2.0 * x[:, 1] + 3.0 * x[:, 0] * x[:, 1] + x[:, 0] ** 2

    grid = Grid(7)
    assert_close(grid.weights(X).apply(f(grid.points(like=X))), f(X), **tolerance(torch.float64))


def test_at_a_grid_point_its_value_is_returned(rng):
    grid = Grid(6)
    points = grid.points(like=torch.zeros((), dtype=torch.float64))
    is_inside = ((points >= 0) & (points <= 1)).all(-1)
    values = torch.randn(36, generator=rng, dtype=torch.float64)
    assert int(is_inside.sum()) == 16
    assert_close(grid.weights(points[is_inside]).apply(values), values[is_inside], **tolerance(torch.float64))


def test_sparse_products_equal_dense_ones(rng):
    X = torch.rand(9, 2, generator=rng, dtype=torch.float64)
    sparse = Grid(5).weights(X)
    W = dense(sparse)
    S = torch.randn(25, 25, generator=rng, dtype=torch.float64)
    v = torch.rand(9, generator=rng, dtype=torch.float64)
    assert_close(sparse.rows_of(S), W @ S)
    assert_close(sparse.quadratic(S), (W @ S @ W.mT).diagonal())
    assert_close(sparse.gather(v), W.mT @ v)
    assert_close(sparse.gram(v), W.mT @ v.diag() @ W)


def test_inputs_outside_the_square_are_refused():
    with pytest.raises(ValueRangeError, match=r"must lie in the unit square, but reaches from -0.1 to 0.5"):
        Grid(5).weights(torch.tensor([[-0.1, 0.5]]))


def test_a_grid_without_an_inner_cell_is_refused():
    with pytest.raises(ValueRangeError, match="size must be a whole number of at least 4, but is 3"):
        Grid(3)
