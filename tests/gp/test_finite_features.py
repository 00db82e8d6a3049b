import pytest
import torch
from gpytorch.kernels import ConstantKernel, LinearKernel, PolynomialKernel, RBFKernel, RFFKernel, ScaleKernel
from tests.support.conditioning_laws import BATCH_SHAPES
from torch.testing import assert_close

from streamgp.gp import AbstractFeatureKernel, read_kernel
from streamgp.gp.coregionalization import CoregionalizationKernel
from streamgp.gp.spherical_linear import SphericalLinearKernel
from streamgp.testing.tolerances import rounding

D = 3
KERNELS = {
    "linear": lambda b: LinearKernel(batch_shape=b),
    "linear by dimension": lambda b: LinearKernel(ard_num_dims=D, batch_shape=b),
    "constant": lambda b: ConstantKernel(batch_shape=b),
    "quadratic": lambda b: PolynomialKernel(2, batch_shape=b),
    "cubic": lambda b: PolynomialKernel(3, batch_shape=b),
    "spherical-linear": lambda b: SphericalLinearKernel(D, batch_shape=b),
    "Fourier": lambda b: RFFKernel(7, num_dims=D, batch_shape=b),
    "Fourier by dimension": lambda b: RFFKernel(7, num_dims=D, ard_num_dims=D, batch_shape=b),
    "scaled": lambda b: ScaleKernel(LinearKernel(batch_shape=b), batch_shape=b),
    "some dimensions": lambda b: ScaleKernel(PolynomialKernel(2, active_dims=(2, 0), batch_shape=b), batch_shape=b),
    "a sum": lambda b: LinearKernel(batch_shape=b) + ConstantKernel(batch_shape=b),
    "a product": lambda b: LinearKernel(active_dims=(0,), batch_shape=b) * PolynomialKernel(2, batch_shape=b),
    "a nested sum": lambda b: ScaleKernel(
        LinearKernel(batch_shape=b) * LinearKernel(batch_shape=b) + ConstantKernel(batch_shape=b), batch_shape=b
    ),
}
SIZES = {
    "linear": 3,
    "constant": 1,
    "quadratic": 10,
    "cubic": 20,
    "spherical-linear": 5,
    "Fourier": 14,
    "a product": 10,
}


def random_kernel(name, batch_shape, rng):
    kernel = KERNELS[name](torch.Size(batch_shape)).double()
    for parameter in kernel.parameters():
        parameter.data = torch.randn(parameter.shape, generator=rng, dtype=torch.float64)
    return kernel


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_products_of_features_equal_gpytorchs_kernel(rng, name, batch_shape):
    kernel = random_kernel(name, batch_shape, rng)
    function = read_kernel(kernel)
    assert isinstance(function, AbstractFeatureKernel)
    X, W = (torch.randn(*batch_shape, n, D, generator=rng, dtype=torch.float64) for n in (4, 6))
    expected = kernel(X, W).to_dense()
    scale = float(kernel(torch.cat([X, W], dim=-2), diag=True).detach().max())
    assert_close(function.features(X) @ function.features(W).mT, expected, **rounding(X.dtype, scale=scale))
    assert_close(function.matrix(X, W), expected, **rounding(X.dtype, scale=scale))
    assert_close(function.diagonal(X), kernel(X, diag=True), **rounding(X.dtype, scale=scale))


@pytest.mark.parametrize("name", SIZES)
def test_there_are_as_many_features_as_the_space_of_functions_has_dimensions(rng, name):
    X = torch.randn(4, D, generator=rng, dtype=torch.float64)
    assert read_kernel(random_kernel(name, (), rng)).features(X).shape == (4, SIZES[name])


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_reach_inputs_and_hyperparameters(rng, name):
    kernel = random_kernel(name, (), rng)
    X = torch.randn(3, D, generator=rng, dtype=torch.float64, requires_grad=True)
    parameters = tuple(kernel.parameters())

    def features(X, *values):
        names = [name for name, _ in kernel.named_parameters()]
        with torch.nn.utils.stateless._reparametrize_module(kernel, dict(zip(names, values, strict=True))):
            return read_kernel(kernel).features(X)

    assert torch.autograd.gradcheck(features, (X, *(p.detach().clone().requires_grad_(True) for p in parameters)))


@pytest.mark.parametrize(
    "kernel",
    [
        RBFKernel(),
        LinearKernel() + RBFKernel(),
        LinearKernel() * RBFKernel(),
        PolynomialKernel(1.5),
        RFFKernel(4),  # whose frequencies GPyTorch draws at the first call
    ],
    ids=["rbf", "a sum with it", "a product with it", "half a power", "no frequencies yet"],
)
def test_other_kernels_have_no_features(kernel):
    assert not isinstance(read_kernel(kernel), AbstractFeatureKernel)


@pytest.mark.parametrize("num_kernels", [1, 2])
def test_outputs_that_mix_latent_functions_have_their_features(rng, num_kernels):
    parts = [LinearKernel(), PolynomialKernel(2)][:num_kernels]
    kernel = CoregionalizationKernel(*parts, num_outputs=3, num_latents=2).double()
    kernel.mixing.data = torch.randn(3, 2, generator=rng, dtype=torch.float64)
    rows = torch.randn(7, D + 1, generator=rng, dtype=torch.float64)
    rows[:, -1] = torch.tensor([0, 1, 2, -1, -2, 0, 1])
    phi = read_kernel(kernel).features(rows)
    expected = CoregionalizationKernel.forward(kernel, rows, rows)
    assert_close(phi @ phi.mT, expected, **rounding(rows.dtype, scale=float(expected.abs().max())))
