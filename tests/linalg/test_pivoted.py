import numpy as np
import pytest
import torch
from scipy.linalg.lapack import dpstrf
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES
from torch.testing import assert_close

from streamgp.errors import NumericalError
from streamgp.linalg import pivoted_cholesky
from streamgp.testing.tolerances import rounding


def kernel(X, Y):
    return torch.exp(-0.5 * torch.cdist(X, Y).square() / 0.09)


def run(X, num_pivots, **options):
    return pivoted_cholesky(kernel, X, num_pivots, variance=torch.ones_like(X[..., 0]), **options)


def test_pivots_and_residual_equal_lapack(rng):
    X = torch.rand(30, 2, generator=rng, dtype=torch.float64)
    weights = 0.5 + torch.rand(30, generator=rng, dtype=torch.float64)
    K = (kernel(X, X) * weights.sqrt() * weights.sqrt().unsqueeze(-1)).numpy()
    factor, order, _, _ = dpstrf(K, lower=True)
    chosen = run(X, 12, weights=weights)
    assert chosen.pivots.tolist() == (order[:12] - 1).tolist()
    assert (chosen.residual[chosen.pivots] == 0.0).all()
    L = np.tril(factor)[:, :12]
    residual = np.empty(30)
    residual[order - 1] = np.diag(K[np.ix_(order - 1, order - 1)]) - (L**2).sum(1)
    assert_close(chosen.residual, torch.from_numpy(residual), **rounding(torch.float64, scale=1.5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_a_batched_call_equals_a_loop(rng, batch_shape, dtype):
    X = torch.rand(*batch_shape, 12, 2, generator=rng, dtype=torch.float64).to(dtype)
    chosen = run(X, 5)
    flat, pivots = X.reshape(-1, 12, 2), chosen.pivots.reshape(-1, 5)
    for i in range(len(flat)):
        assert torch.equal(pivots[i], run(flat[i], 5).pivots)


@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@pytest.mark.parametrize("num_pivots", [6, 9, 12])
def test_the_whole_matrix_gives_the_pivots_that_rows_give(rng, batch_shape, num_pivots):
    X = torch.rand(*batch_shape, 12, 2, generator=rng, dtype=torch.float64)
    X[..., 7, :] = X[..., 3, :]
    whole = run(X, num_pivots)
    first = whole.pivots[..., :1]
    rows = run(X, num_pivots, start=first)  # a start is continued row by row
    # The copies at 3 and 7 are alike, so either may be taken.
    assert torch.equal(whole.pivots.where(whole.pivots != 7, 3), rows.pivots.where(rows.pivots != 7, 3))
    assert torch.equal(whole.is_chosen, rows.is_chosen)
    assert_close(whole.residual, rows.residual, **rounding(torch.float64))


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_stops_when_the_residual_is_exhausted(rng, dtype):
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64).to(dtype).repeat(5, 1)
    chosen = run(X, 10)
    assert chosen.pivots.shape == (4,)
    assert sorted((chosen.pivots % 4).tolist()) == [0, 1, 2, 3]
    assert chosen.residual.max() < 1e-5


def test_a_member_of_a_batch_that_is_exhausted_repeats_its_first_pivot(rng):
    X = torch.rand(2, 6, 2, generator=rng, dtype=torch.float64)
    X[0] = X[0, :2].repeat(3, 1)
    chosen = run(X, 5)
    assert chosen.is_chosen.sum(-1).tolist() == [2, 5]
    assert (chosen.pivots[0, 2:] == chosen.pivots[0, 0]).all()


def test_starting_from_pivots_so_far_continues_as_if_they_had_been_chosen(rng):
    X = torch.rand(40, 2, generator=rng, dtype=torch.float64)
    whole = run(X, 10)
    continued = run(X, 10, start=whole.pivots[:4])
    assert torch.equal(continued.pivots, whole.pivots)
    assert_close(continued.residual, whole.residual, **rounding(torch.float64))
    assert (continued.residual[continued.pivots] == 0.0).all()
    assert (run(X, 4, start=whole.pivots[:4]).residual[whole.pivots[:4]] == 0.0).all()
    assert torch.equal(run(X, 3, start=whole.pivots[:4]).pivots, whole.pivots[:3])


def test_points_of_weight_zero_are_not_chosen(rng):
    X = torch.rand(10, 2, generator=rng, dtype=torch.float64)
    weights = torch.ones(10, dtype=torch.float64)
    weights[::2] = 0.0
    for num_pivots in (10, 5):
        assert sorted(run(X, num_pivots, weights=weights).pivots.tolist()) == [1, 3, 5, 7, 9]
    for num_pivots in (10, 4):
        assert run(X, num_pivots, weights=0.0 * weights).pivots.shape == (0,)
        # Nor are those of weights that are rounding beside the largest.
        only = 1e-14 + (weights.cumsum(0) == 2) * weights
        assert run(X, num_pivots, weights=only).pivots.tolist() == [3]


def test_rows_of_the_kernel_are_evaluated_one_at_a_time(rng):
    largest = 0

    def watched(X, Y):
        nonlocal largest
        largest = max(largest, X.shape[-2])
        return kernel(X, Y)

    X = torch.rand(200, 2, generator=rng, dtype=torch.float64)
    pivoted_cholesky(watched, X, 20, variance=torch.ones(200, dtype=torch.float64))
    assert largest == 1


@pytest.mark.slow
def test_many_points_are_chosen_from_without_their_kernel_matrix_and_leave_a_small_residual(rng):
    X = torch.rand(20_000, 3, generator=rng, dtype=torch.float64)  # whose matrix would take 3.2 GB
    chosen = run(X, 100)
    assert chosen.pivots.unique().numel() == 100
    random = run(X, 100, start=torch.arange(100))
    assert chosen.residual.sum() < random.residual.sum()


@pytest.mark.parametrize("num_pivots", [1, 4])
@pytest.mark.parametrize("weight", [float("inf"), float("nan"), 1e200])
def test_weights_that_numbers_cannot_hold_are_refused(num_pivots, weight):
    X = torch.arange(4, dtype=torch.float64).unsqueeze(-1)
    variance = torch.full((4,), 1e200, dtype=torch.float64)
    weights = torch.tensor([1.0, weight, 1.0, 1.0], dtype=torch.float64)
    with pytest.raises(NumericalError, match="beyond what numbers can hold"):
        pivoted_cholesky(lambda a, b: 1e200 * (a == b.mT).double(), X, num_pivots, variance=variance, weights=weights)


def test_a_start_is_continued_with_its_weights(rng):
    X = torch.rand(30, 2, generator=rng, dtype=torch.float64)
    weights = 0.1 + 5.0 * torch.rand(30, generator=rng, dtype=torch.float64)
    whole = run(X, 8, weights=weights)
    continued = run(X, 8, weights=weights, start=whole.pivots[:4])
    assert torch.equal(continued.pivots, whole.pivots)
    assert_close(continued.residual, whole.residual, **rounding(torch.float64, scale=5.0))
