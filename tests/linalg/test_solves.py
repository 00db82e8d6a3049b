import pytest
import torch
from torch.testing import assert_close

from streamgp.linalg import apply, solve_lower, solve_lower_transpose, solve_vector
from streamgp.testing.tolerances import tolerance


@pytest.mark.parametrize("factor_batch", [(), (3,), (2, 1)])
@pytest.mark.parametrize("extra", [(), (4,), (4, 2)])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_solves_share_the_factor_between_leading_axes(rng, factor_batch, extra, k):
    L = torch.randn(*factor_batch, 4, 4, generator=rng, dtype=torch.float64).tril() + 4 * torch.eye(4)
    B = torch.randn(*extra, *factor_batch, 4, k, generator=rng, dtype=torch.float64)
    assert_close(L @ solve_lower(L, B), B, **tolerance(B.dtype))
    assert_close(L.mT @ solve_lower_transpose(L, B), B, **tolerance(B.dtype))


@pytest.mark.parametrize("factor_batch", [(), (3,), (2, 1)])
@pytest.mark.parametrize("extra", [(), (4,), (4, 2)])
def test_vectors_with_more_axes_than_the_matrix_are_solved_and_multiplied(rng, factor_batch, extra):
    L = torch.randn(*factor_batch, 4, 4, generator=rng, dtype=torch.float64).tril() + 4 * torch.eye(4)
    b = torch.randn(*extra, *factor_batch, 4, generator=rng, dtype=torch.float64)
    expected = (L @ b.unsqueeze(-1)).squeeze(-1)
    assert_close(apply(L, b), expected, **tolerance(b.dtype))
    assert_close(solve_vector(L, expected), b, **tolerance(b.dtype))
    transposed = (L.mT @ b.unsqueeze(-1)).squeeze(-1)
    assert_close(solve_vector(L, transposed, is_transposed=True), b, **tolerance(b.dtype))


def test_a_batch_of_matrices_is_applied_to_one_vector(rng):
    M = torch.randn(3, 5, 4, generator=rng, dtype=torch.float64)
    v = torch.randn(4, generator=rng, dtype=torch.float64)
    assert_close(apply(M, v), M @ v, **tolerance(v.dtype))
