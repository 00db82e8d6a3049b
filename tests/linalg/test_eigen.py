import pytest
import torch
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES
from torch.testing import assert_close

from streamgp.errors import NumericalError
from streamgp.linalg import symmetric_eigen, symmetric_eigenvalues
from streamgp.testing.tolerances import rounding


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_the_parts_give_the_matrix_and_the_vectors_are_orthonormal(rng, batch_shape, dtype):
    root = torch.randn(*batch_shape, 5, 5, generator=rng, dtype=torch.float64).to(dtype)
    A = root + root.mT
    values, vectors = symmetric_eigen(A)
    limits = rounding(dtype, scale=A.abs().max().item())
    assert_close(vectors @ (values.unsqueeze(-1) * vectors.mT), A, **limits)
    assert_close(symmetric_eigenvalues(A), values, **limits)
    assert_close(vectors.mT @ vectors, torch.eye(5, dtype=dtype).expand_as(A), **limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_matrix_that_is_not_finite_is_refused_with_a_sentence(bad, dtype):
    A = torch.eye(3, dtype=dtype)
    A[2, 1] = A[1, 2] = bad
    with pytest.raises(NumericalError, match="the demo matrix has no eigenvalues that could be computed"):
        symmetric_eigen(A, name="the demo matrix")
    with pytest.raises(NumericalError, match="the demo matrix has no eigenvalues that could be computed"):
        symmetric_eigenvalues(A, name="the demo matrix")
