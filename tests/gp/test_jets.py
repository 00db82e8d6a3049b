"""Numbers that carry slopes: their algebra, and the kernels that are made of them, against differences."""

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

from streamgp.gp.coregionalization import CoregionalizationKernel
from streamgp.gp.interactions import InteractionKernel
from streamgp.gp.jets import Jet, Moving
from streamgp.gp.kernels import read_kernel
from streamgp.gp.spherical_linear import SphericalLinearKernel
from streamgp.testing.tolerances import approximation, tolerance

KERNELS = {
    "rbf": RBFKernel(ard_num_dims=3),
    "matern 3/2": MaternKernel(1.5, ard_num_dims=3),
    "matern 5/2": ScaleKernel(MaternKernel(2.5, ard_num_dims=3)),
    "active": MaternKernel(2.5, active_dims=(0, 2)),
    "sum": ScaleKernel(RBFKernel()) + MaternKernel(2.5, active_dims=(1,)),
    "product": ScaleKernel(RBFKernel() * MaternKernel(1.5, active_dims=(1,)) * LinearKernel()),
    "rational quadratic": ScaleKernel(RQKernel(ard_num_dims=3)),
    "periodic": PeriodicKernel(ard_num_dims=3),
    "cosine": ScaleKernel(CosineKernel(active_dims=(0, 2))),
    "interactions": ScaleKernel(InteractionKernel(ard_num_dims=3)),
    "polynomial": PolynomialKernel(3),
    "spherical": SphericalLinearKernel(3),
    "one of several outputs": CoregionalizationKernel(MaternKernel(2.5), num_outputs=3, num_latents=2),
    "outputs of two functions": CoregionalizationKernel(MaternKernel(2.5), RBFKernel(), num_outputs=3),
}


@pytest.mark.parametrize("name", KERNELS)
def test_slopes_equal_differences(name):
    rng = torch.Generator().manual_seed(0)
    kernel = read_kernel(KERNELS[name].double())
    x, z, v, w = (torch.randn(2, 3, generator=rng, dtype=torch.float64) for _ in range(4))
    with torch.no_grad():
        if "outputs" in name:  # the last input says which; there is no way between two of them
            x[:, 2], z[:, 2] = torch.tensor([0.0, 2.0]), torch.tensor([2.0, -1.0])
            KERNELS[name].mixing.copy_(torch.tensor([[1.0, 0.5], [0.0, 1.0], [-0.7, 2.0]]))
        jet = kernel.jet(Moving(x, v), Moving(z, w))
        h = 1e-4

        def at(s, t):
            return kernel.matrix(x + s * v, z + t * w)

        assert torch.allclose(jet.value, at(0, 0), **tolerance(torch.float64))
        assert torch.allclose(jet.first, (at(h, 0) - at(-h, 0)) / (2 * h), **approximation(1e-5, "finite differences"))
        assert torch.allclose(jet.second, (at(0, h) - at(0, -h)) / (2 * h), **approximation(1e-5, "finite differences"))
        both = (at(h, h) - at(h, -h) - at(-h, h) + at(-h, -h)) / (4 * h * h)
        assert torch.allclose(jet.both, both, **approximation(1e-4, "finite differences"))


@pytest.mark.parametrize("name", KERNELS)
def test_what_does_not_move_has_no_slope_and_costs_nothing(name):
    x = torch.rand(2, 3, dtype=torch.float64)
    still = read_kernel(KERNELS[name].double()).jet(Moving(x, None), Moving(x, None))
    assert (still.first, still.second, still.both) == (0.0, 0.0, 0.0)


def test_a_product_follows_the_product_rule():
    one, two = (Jet(*torch.tensor(numbers)) for numbers in ([2.0, 3.0, 5.0, 7.0], [1.0, -1.0, 4.0, 2.0]))
    product = one * two
    assert [float(part) for part in (product.value, product.first, product.second, product.both)] == [
        2.0,
        3.0 - 2.0,
        5.0 + 8.0,
        7.0 + 3.0 * 4.0 - 5.0 + 4.0,
    ]


@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-3, 0.0999, 0.1001, 2.7])
def test_slopes_of_a_cosine_keep_their_digits_near_zero(apart):
    kernel = CosineKernel().double()
    kernel.period_length = torch.tensor(torch.pi, dtype=torch.float64)  # of the distance itself
    zero = torch.zeros(1, 1, dtype=torch.float64)
    one = zero + 1.0
    with torch.no_grad():
        jet = read_kernel(kernel).jet(Moving(zero + apart, one), Moving(zero, one))
    x = torch.tensor(apart, dtype=torch.float64)
    expected = (x.cos(), -x.sin(), x.sin(), x.cos())
    for part, value in zip((jet.value, jet.first, jet.second, jet.both), expected, strict=True):
        torch.testing.assert_close(part.squeeze(), value, **tolerance(torch.float64))
