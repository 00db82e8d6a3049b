import pytest
import torch
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES
from torch.testing import assert_close

from streamgp.errors import NumericalError
from streamgp.linalg import cholesky, extend_cholesky
from streamgp.testing.tolerances import rounding, tolerance


def random_matrix(rng, n, *, batch_shape=(), dtype=torch.float64):
    root = torch.randn(*batch_shape, n, n + 2, generator=rng, dtype=torch.float64)
    return (root @ root.mT).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_a_definite_matrix_needs_no_jitter(rng, batch_shape, dtype):
    A = random_matrix(rng, 5, batch_shape=batch_shape, dtype=dtype)
    L, jitter = cholesky(A)
    assert_close(L @ L.mT, A, **tolerance(dtype, scale=10.0))
    assert jitter.shape == batch_shape
    assert (jitter == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_member_of_a_batch_gets_the_jitter_it_needs_and_says_so(rng, dtype):
    good = random_matrix(rng, 4, dtype=dtype)
    A = torch.stack([good, torch.ones(4, 4, dtype=dtype) - 1e-7 * torch.eye(4, dtype=dtype)])
    L, jitter = cholesky(A)
    assert jitter[0] == 0
    assert 0 < jitter[1] < 1e-3
    assert_close(L[1] @ L[1].mT, A[1] + jitter[1] * torch.eye(4, dtype=dtype), **rounding(dtype))


def test_an_indefinite_matrix_is_refused_with_a_sentence():
    with pytest.raises(NumericalError, match="the demo matrix is not positive definite, even with"):
        cholesky(-torch.eye(3), name="the demo matrix")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_matrix_that_is_not_finite_is_refused_with_a_sentence(bad):
    A = torch.eye(3)
    A[2, 1] = A[1, 2] = bad
    with pytest.raises(NumericalError, match="entries that are NaN or infinite"):
        cholesky(A)


def test_the_factor_is_differentiable(rng):
    A = random_matrix(rng, 4).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda A: cholesky(0.5 * (A + A.mT))[0], [A])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pivot_below_the_rounding_of_what_was_subtracted_is_not_trusted(dtype):
    eps = torch.finfo(dtype).eps
    A = torch.tensor([[1.0, 1.0], [1.0, 1.0 + 2 * eps]], dtype=dtype)
    assert cholesky(A)[1] == 0
    L, jitter = cholesky(A, scale=torch.ones(2, dtype=dtype))
    assert 0 < jitter <= 1e-5
    assert_close(L @ L.mT, A + jitter * torch.eye(2, dtype=dtype), **rounding(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_jitter_is_relative_to_the_scale_of_what_was_subtracted(dtype):
    # All that is left of a matrix of ones is rounding, of either sign.
    A = torch.finfo(dtype).eps * torch.tensor([[-1.0, 0.5], [0.5, 1.0]], dtype=dtype)
    with pytest.raises(NumericalError, match="not positive definite"):
        cholesky(A)
    _, jitter = cholesky(A, scale=torch.ones(2, dtype=dtype))
    assert jitter > 0


def test_members_of_a_batch_are_judged_by_their_own_scale():
    A = torch.eye(2, dtype=torch.float64).expand(2, 2, 2) * 1e-10
    _, jitter = cholesky(A, scale=torch.tensor([[1e-10, 1e-10], [1e10, 1e10]], dtype=torch.float64))
    assert jitter[0] == 0
    assert jitter[1] > 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_a_factor_is_put_together_from_its_blocks(rng, batch_shape, dtype):
    A = random_matrix(rng, 5, batch_shape=batch_shape, dtype=dtype)
    L = torch.linalg.cholesky(A)
    assert torch.equal(extend_cholesky(L[..., :3, :3], L[..., 3:, :3], L[..., 3:, 3:]), L)
    shared = extend_cholesky(L[..., :3, :3], torch.ones(2, 3, dtype=dtype), torch.eye(2, dtype=dtype))
    assert shared.shape == L.shape
    assert torch.equal(shared[..., 3:, 3:], torch.eye(2, dtype=dtype).expand(*batch_shape, 2, 2))
    assert torch.equal(shared, shared.tril())
