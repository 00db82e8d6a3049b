"""The kernel of several outputs, against its definition."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.testing import assert_close

from streamgp.gp.coregionalization import CoregionalizationKernel, OutputMean, latent_column, output_rows
from streamgp.gp.kernels import read_kernel
from streamgp.testing.tolerances import tolerance


def problem(rng, dtype):
    kernel = CoregionalizationKernel(RBFKernel(), MaternKernel(1.5), num_outputs=3).to(dtype)
    with torch.no_grad():
        kernel.mixing.copy_(torch.randn(3, 2, generator=rng, dtype=dtype))
    X = torch.rand(4, 2, generator=rng, dtype=dtype)
    return kernel, X


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_outputs_are_mixtures_of_latent_functions(rng, dtype):
    kernel, X = problem(rng, dtype)
    parts = torch.stack([part(X).to_dense() for part in kernel.kernels])
    expected = torch.einsum("ol,pl,lij->iojp", kernel.mixing, kernel.mixing, parts).reshape(12, 12)
    rows = output_rows(X, range(3))
    assert_close(kernel(rows).to_dense(), expected, **tolerance(dtype))
    assert_close(read_kernel(kernel).matrix(rows, rows), expected, **tolerance(dtype))
    assert_close(read_kernel(kernel).diagonal(rows), expected.diagonal(), **tolerance(dtype))
    assert_close(kernel(rows, diag=True), expected.diagonal(), **tolerance(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_latent_functions_are_independent_and_covary_with_outputs_by_their_weights(rng, dtype):
    kernel, X = problem(rng, dtype)
    function = read_kernel(kernel)
    first, second = latent_column(X, 0), latent_column(X, 1)
    assert_close(function.matrix(first, second), torch.zeros(4, 4, dtype=dtype))
    assert_close(function.matrix(second, second), kernel.kernels[1](X).to_dense(), **tolerance(dtype))
    third = output_rows(X, range(3))[2::3]
    expected = kernel.mixing[2, 1] * kernel.kernels[1](X).to_dense()
    assert_close(function.matrix(second, third), expected, **tolerance(dtype))


def test_each_output_has_a_mean_and_latent_functions_have_none(rng):
    mean = OutputMean(num_outputs=2).double()
    with torch.no_grad():
        mean.constants.copy_(torch.tensor([1.0, 5.0]))
    X = torch.rand(2, 1, generator=rng, dtype=torch.float64)
    assert mean(output_rows(X, range(2))).tolist() == [1.0, 5.0, 1.0, 5.0]
    assert mean(latent_column(X, 0)).tolist() == [0.0, 0.0]
