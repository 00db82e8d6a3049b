import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES
from torch.testing import assert_close

from streamgp.gp import StationaryKernel, read_kernel
from streamgp.testing.tolerances import tolerance

MAKERS = {
    "rbf": lambda **options: RBFKernel(**options),
    "matern 1/2": lambda **options: MaternKernel(0.5, **options),
    "matern 3/2": lambda **options: MaternKernel(1.5, **options),
    "matern 5/2": lambda **options: MaternKernel(2.5, **options),
}


def make(name, batch_shape, dtype, rng, *, is_scaled=True, ard=True):
    base = MAKERS[name](ard_num_dims=3 if ard else None, batch_shape=torch.Size(batch_shape))
    base.lengthscale = 0.3 + torch.rand(base.lengthscale.shape, generator=rng)
    if not is_scaled:
        return base.to(dtype)
    kernel = ScaleKernel(base, batch_shape=torch.Size(batch_shape))
    kernel.outputscale = 0.5 + torch.rand(batch_shape, generator=rng)
    return kernel.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@pytest.mark.parametrize("is_scaled", [True, False])
@pytest.mark.parametrize("ard", [True, False])
@pytest.mark.parametrize("name", MAKERS)
def test_fused_kernels_equal_gpytorch(rng, name, batch_shape, dtype, is_scaled, ard):
    kernel = make(name, batch_shape, dtype, rng, is_scaled=is_scaled, ard=ard)
    fused = read_kernel(kernel)
    assert isinstance(fused, StationaryKernel)
    X = torch.rand(*batch_shape, 5, 3, generator=rng, dtype=torch.float64).to(dtype)
    Y = torch.rand(4, 3, generator=rng, dtype=torch.float64).to(dtype)
    assert_close(fused.matrix(X, Y), kernel(X, Y.expand(*batch_shape, 4, 3)).to_dense(), **tolerance(dtype))
    assert_close(fused.diagonal(X), kernel(X, diag=True), **tolerance(dtype))
    exact_diagonal = fused.matrix(X, X).diagonal(dim1=-2, dim2=-1)
    assert torch.equal(exact_diagonal, fused.diagonal(X))


@pytest.mark.parametrize("name", MAKERS)
def test_gradients_reach_inputs_and_hyperparameters(rng, name):
    X = torch.rand(2, 3, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    Y = torch.rand(4, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    lengthscale = torch.tensor([[0.5, 0.8]], dtype=torch.float64, requires_grad=True)
    outputscale = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    profile = read_kernel(MAKERS[name]()).profile

    def value(X, Y, lengthscale, outputscale):
        return StationaryKernel(profile, lengthscale, outputscale, 2.5).matrix(X, Y)

    assert torch.autograd.gradcheck(value, [X, Y, lengthscale, outputscale])
    assert torch.autograd.gradgradcheck(value, [X, Y, lengthscale, outputscale])


@pytest.mark.parametrize("name", MAKERS)
def test_gradients_are_finite_at_coinciding_points(name):
    X = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    read_kernel(MAKERS[name]().double()).matrix(X, X).sum().backward()
    assert torch.equal(X.grad, torch.zeros(2, 2, dtype=torch.float64))


@pytest.mark.parametrize(("dtype", "far"), [(torch.float32, 1e20), (torch.float32, 3e38), (torch.float64, 1e300)])
@pytest.mark.parametrize("name", MAKERS)
def test_far_inputs_have_nothing_in_common_and_disturb_no_others(name, dtype, far):
    kernel = read_kernel(ScaleKernel(MAKERS[name]()).to(dtype).requires_grad_(False))
    X = torch.tensor([[far], [0.2], [-far], [0.5]], dtype=dtype, requires_grad=True)
    K = kernel.matrix(X, X)
    K.sum().backward()
    assert torch.isfinite(X.grad).all()
    near = kernel.matrix(X[1::2], X[1::2])
    assert_close(K[1::2, 1::2], near, **tolerance(dtype))
    assert torch.equal(K.diagonal(), kernel.diagonal(X))
    assert K[0, 1:].abs().max() == K[2, 3].abs() == 0


@pytest.mark.parametrize(("dtype", "offset"), [(torch.float32, 1e6), (torch.float64, 1e14)])
@pytest.mark.parametrize("name", MAKERS)
def test_offsets_cost_no_digits_in_value_and_gradient(name, dtype, offset):
    steps = torch.tensor([[0.0], [0.0625], [0.1875], [0.25]], dtype=dtype)
    base = MAKERS[name]().to(dtype)
    base.lengthscale = 0.1
    kernel = read_kernel(base.requires_grad_(False))

    def value_and_gradient(shift):
        X = (steps + shift).requires_grad_(True)
        K = kernel.matrix(X, X[1:])
        K.square().sum().backward()
        return K.detach(), X.grad

    # The steps are multiples of what the dtype resolves at the offset, so both problems are the same.
    for at_offset, at_zero in zip(value_and_gradient(offset), value_and_gradient(0.0), strict=True):
        rounding = 32 * torch.finfo(dtype).eps * float(at_zero.abs().max())
        assert_close(at_offset, at_zero, rtol=0.0, atol=rounding)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("offset", [1.0, 3.0, 4.7])
def test_offsets_of_some_lengthscales_cost_no_digits_either(name, offset, rng):
    X = offset + 0.2 * torch.rand(200, 1, generator=rng)
    base = MAKERS[name]()
    base.lengthscale = 0.1
    found = read_kernel(base.requires_grad_(False)).matrix(X, X)
    right = read_kernel(base.double()).matrix(X.double(), X.double())
    # Of 16 lengthscales from zero, half a unit of rounding for each input; that of the lengthscale counts in both.
    assert (found - right).abs().max() <= 17 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("name", MAKERS)
def test_one_row_or_column_alone_is_that_of_the_matrix(rng, name, offset, dtype):
    fused = read_kernel(make(name, (), dtype, rng).requires_grad_(False))
    X = (offset + torch.rand(5, 3, generator=rng, dtype=torch.float64)).to(dtype)
    Y = (offset + torch.rand(4, 3, generator=rng, dtype=torch.float64)).to(dtype)
    whole = fused.matrix(X, Y)
    assert_close(torch.cat([fused.matrix(X[i : i + 1], Y) for i in range(5)]), whole, **tolerance(dtype))
    columns = [fused.matrix(X, Y[j : j + 1]) for j in range(4)]
    assert_close(torch.cat(columns, dim=-1), whole, **tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reach", [0.3, 10.0])
@pytest.mark.parametrize("name", MAKERS)
def test_many_dimensions_cost_no_digits(rng, name, reach, dtype):
    X = (reach * torch.rand(30, 60, generator=rng, dtype=torch.float64)).to(dtype)
    Z = torch.cat([X[:10], X[10:15] + 1e-6])  # the same points, and very close ones
    digits = {"rtol": 0.0, "atol": 256 * torch.finfo(dtype).eps}
    kernel = read_kernel(MAKERS[name]().to(dtype))
    s = (X.double().unsqueeze(1) - Z.double()).norm(dim=-1) / kernel.lengthscale.double()
    expected = StationaryKernel(kernel.profile, torch.ones(1, 1), torch.ones(()), kernel.smoothness).matrix(
        torch.zeros(1, 1).double(), s.reshape(-1, 1)
    )
    assert_close(kernel.matrix(X, Z).double(), expected.reshape(30, 15), **digits)
    lengthscale = kernel.lengthscale.detach().clone().requires_grad_(True)
    tracked = StationaryKernel(kernel.profile, lengthscale, kernel.outputscale, kernel.smoothness)
    assert_close(tracked.matrix(X, Z).double(), expected.reshape(30, 15), **digits)
    if dtype == torch.float64:
        W = Z.flip(-1)  # none of them at a point of X
        assert torch.autograd.gradcheck(lambda x: tracked.matrix(x, W), X[:4].clone().requires_grad_(True))
