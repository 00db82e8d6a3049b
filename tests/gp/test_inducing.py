"""The seam: values at points, latent groups and weights of features, by what a sparse belief needs of them."""

import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, PolynomialKernel, RBFKernel
from torch.testing import assert_close

from streamgp.errors import UnsupportedError
from streamgp.gp import inducing_variables, read_kernel
from streamgp.gp.coregionalization import CoregionalizationKernel, latent_column
from streamgp.gp.inducing import FeatureWeights, InducingPoints
from streamgp.testing.tolerances import rounding

D = 2


def case(name, rng):
    """Inducing variables, and inputs that they have covariances with."""
    X, Z = (torch.rand(n, D, generator=rng, dtype=torch.float64) for n in (6, 4))
    if name == "points":
        return inducing_variables(Z, read_kernel(RBFKernel().double())), X
    if name == "weights":
        return inducing_variables(Z[:0], read_kernel(PolynomialKernel(2).double())), X
    kernel = CoregionalizationKernel(RBFKernel(), MaternKernel(1.5), num_outputs=3, num_latents=2).double()
    kernel.mixing.data = torch.randn(3, 2, generator=rng, dtype=torch.float64)
    outputs = torch.tensor([0.0, 1.0, 2.0, 0.0, 1.0, 2.0], dtype=torch.float64).unsqueeze(-1)
    groups = torch.cat([latent_column(Z, 0), latent_column(Z[:2], 1)])
    return inducing_variables(groups, read_kernel(kernel)), torch.cat([X, outputs], dim=-1)


@pytest.mark.parametrize("name", ["points", "latent groups", "weights"])
def test_they_are_jointly_gaussian_with_the_function(rng, name):
    inducing, X = case(name, rng)
    m, n = inducing.num_variables, len(X)
    K, cross = inducing.covariance(), inducing.cross(X)
    joint = torch.cat([torch.cat([K, cross], dim=1), torch.cat([cross.mT, inducing.kernel.matrix(X, X)], dim=1)])
    assert joint.shape == (m + n, m + n)
    size = float(joint.detach().abs().max())
    assert torch.linalg.eigvalsh(joint).min() > -rounding(X.dtype, condition=m + n, scale=size)["atol"]
    assert_close(inducing.crossed(X), cross.mT, **rounding(X.dtype))
    also = inducing.crossed(X, X[:2])
    assert_close(also, torch.cat([cross.mT, inducing.kernel.matrix(X, X[:2])], dim=1), **rounding(X.dtype))


@pytest.mark.parametrize("name", ["points", "latent groups", "weights"])
def test_covariances_with_themselves_are_their_own(rng, name):
    inducing, _ = case(name, rng)
    K = inducing.covariance()
    condition = 1.0 if name != "weights" else 1e3  # of the features at the inputs that tell them apart
    assert_close(inducing.between(inducing), K, **rounding(K.dtype, condition=condition))
    assert inducing.matches(inducing).equal(torch.eye(len(K), dtype=torch.bool))


def test_latent_groups_are_uncorrelated(rng):
    inducing, _ = case("latent groups", rng)
    assert (inducing.covariance()[:4, 4:] == 0).all()


def test_weights_explain_all_of_the_function(rng):
    inducing, X = case("weights", rng)
    cross = inducing.cross(X)
    K = inducing.kernel.matrix(X, X)
    assert_close(cross.mT @ cross, K, **rounding(K.dtype, scale=float(K.max())))
    assert float(inducing.jitter(1e-3)) == 0.0
    assert not inducing.is_movable


def test_points_and_weights_under_one_kernel_have_the_covariance_of_values_and_weights(rng):
    kernel = read_kernel(LinearKernel().double())
    Z = torch.rand(3, D, generator=rng, dtype=torch.float64)
    points, weights = inducing_variables(Z, kernel), inducing_variables(Z[:0], kernel)
    assert isinstance(points, InducingPoints)
    assert isinstance(weights, FeatureWeights)
    assert_close(weights.between(points), weights.cross(Z), **rounding(Z.dtype))
    assert_close(points.between(weights), kernel.features(Z), **rounding(Z.dtype, condition=100.0))
    assert not points.matches(weights).any()
    assert not weights.matches(points).any()


def test_without_points_a_kernel_needs_features():
    with pytest.raises(UnsupportedError, match="the kernel must have finitely many features"):
        inducing_variables(torch.zeros(0, D), read_kernel(RBFKernel()))


@pytest.mark.parametrize("name", ["points", "weights"])
def test_a_batch_equals_a_loop(rng, name):
    Z = torch.rand(2, 3, 4, D, generator=rng, dtype=torch.float64)
    X = torch.rand(2, 3, 5, D, generator=rng, dtype=torch.float64)
    kernel = read_kernel((RBFKernel() if name == "points" else PolynomialKernel(2)).double())
    whole = inducing_variables(Z if name == "points" else Z[..., :0, :], kernel)
    other = inducing_variables(Z.flip(-2) if name == "points" else Z[..., :0, :], kernel)
    found = whole.covariance(), whole.cross(X), whole.crossed(X, X[..., :2, :]), whole.matches(other)
    for i, j in ((0, 0), (1, 2)):
        one, two = (
            inducing_variables(each.points[i, j] if name == "points" else Z[i, j, :0], kernel)
            for each in (whole, other)
        )
        alone = one.covariance(), one.cross(X[i, j]), one.crossed(X[i, j], X[i, j, :2]), one.matches(two)
        for ours, theirs in zip(found, alone, strict=True):
            assert_close(ours[i, j], theirs)
