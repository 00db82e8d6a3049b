import gpytorch
import pytest
import torch
from gpytorch.kernels import (
    CosineKernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from tests.support.conditioning_laws import BATCH_SHAPES
from torch.testing import assert_close

from streamgp.gp import ModuleKernel, read_kernel
from streamgp.testing.tolerances import rounding, tolerance

KERNELS = {
    "scaled periodic": lambda: ScaleKernel(PeriodicKernel()),
    "active dimensions": lambda: RBFKernel(active_dims=(1,)),
    "scaled active dimensions": lambda: ScaleKernel(MaternKernel(1.5, active_dims=(2, 0), ard_num_dims=2)),
    "sum": lambda: RBFKernel() + MaternKernel(1.5),
    "scaled sum of products": lambda: ScaleKernel(
        ScaleKernel(RBFKernel(active_dims=(0,))) * PeriodicKernel(active_dims=(1,)) + LinearKernel()
    ),
    "linear": LinearKernel,
    "rational quadratic": lambda: ScaleKernel(RQKernel()),
    "polynomial": lambda: PolynomialKernel(power=2),
    "additive structure": lambda: gpytorch.kernels.AdditiveStructureKernel(RBFKernel(), num_dims=3),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_equal_gpytorch(rng, name):
    kernel = KERNELS[name]().double()
    X = torch.rand(5, 3, generator=rng, dtype=torch.float64)
    read = read_kernel(kernel)
    assert_close(read.matrix(X, X[:3]), kernel(X, X[:3]).to_dense(), **tolerance(X.dtype))
    assert_close(read.diagonal(X), kernel(X).to_dense().diagonal(), **tolerance(X.dtype))


@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_batched_compositions_equal_gpytorch(rng, batch_shape):
    shape = torch.Size(batch_shape)
    kernel = ScaleKernel(RBFKernel(batch_shape=shape) + MaternKernel(2.5, batch_shape=shape), batch_shape=shape)
    kernel.outputscale = 0.5 + torch.rand(shape, generator=rng)
    X = torch.rand(*batch_shape, 5, 3, generator=rng)
    assert_close(read_kernel(kernel).matrix(X, X), kernel(X).to_dense(), **tolerance(X.dtype))


def test_unknown_kernels_are_evaluated_by_gpytorch():
    assert isinstance(read_kernel(RQKernel()), ModuleKernel)


@pytest.mark.parametrize("name", ["scaled periodic", "sum", "scaled sum of products", "rational quadratic"])
def test_offsets_cost_no_digits(name):
    kernel = read_kernel(KERNELS[name]())
    X = torch.tensor([[0.0, 0.5, 0.25], [0.125, 0.0, 0.5], [0.0625, 0.375, 0.0]])
    shift = torch.tensor([1e6, 1e6, 1e6]) if "product" not in name else torch.tensor([1e6, 1e6, 0.0])
    if "product" in name:
        kernel = kernel.base.parts[0]
    assert_close(kernel.matrix(X + shift, X + shift), kernel.matrix(X, X), **rounding(X.dtype))


def test_offsets_cost_no_digits_of_scaled_kernels_with_active_dimensions():
    kernel = read_kernel(ScaleKernel(CosineKernel(active_dims=(1,))))
    X = torch.tensor([[0.0, 0.5, 0.25], [0.125, 0.0, 0.5], [0.0625, 0.375, 0.0]])
    assert_close(kernel.matrix(X + 1e6, X + 1e6), kernel.matrix(X, X), **rounding(X.dtype))


@pytest.mark.parametrize(("dtype", "far"), [(torch.float32, 1e30), (torch.float64, 1e307)])
@pytest.mark.parametrize("name", ["scaled periodic", "sum", "rational quadratic"])
def test_far_inputs_are_finite_and_disturb_no_others(name, dtype, far):
    kernel = read_kernel(KERNELS[name]().to(dtype).requires_grad_(False))
    X = torch.tensor([[0.3, 0.5, 0.25], [far, far, far], [0.6, 0.3, 0.1]], dtype=dtype, requires_grad=True)
    K = kernel.matrix(X, X)
    K.sum().backward()
    assert torch.isfinite(K).all()
    assert torch.isfinite(X.grad).all()
    assert_close(K[::2, ::2], kernel.matrix(X[::2], X[::2]), **tolerance(dtype))
    assert_close(K.diagonal(), kernel.diagonal(X), **tolerance(dtype))
