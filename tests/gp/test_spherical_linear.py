"""The linear kernel on a sphere, against its definition and against linear regression."""

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.gp.kernels import read_kernel
from streamgp.gp.spherical_linear import SphericalLinearKernel
from streamgp.testing.tolerances import approximation, tolerance


def make(rng, dtype, *, d=3):
    kernel = SphericalLinearKernel(d).to(dtype)
    with torch.no_grad():
        kernel.lengthscale = 0.5 + torch.rand(d, generator=rng, dtype=dtype)
        kernel.share_logits.copy_(torch.tensor([0.3, -0.4]))
        kernel.radius_logit.fill_(0.7)
    return kernel


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernel_is_the_product_of_points_on_the_sphere(rng, dtype):
    kernel = make(rng, dtype)
    x, y = torch.rand(2, 3, generator=rng, dtype=dtype)
    scale = kernel.lengthscale[0]
    radius = (kernel.radius_logit.sigmoid() * sum((0.5 / scale_j) ** 2 for scale_j in scale)).sqrt()

    def project(point):
        z = [(point[j] - 0.5) / (radius * scale[j]) for j in range(3)]
        squared = sum(one**2 for one in z)
        return torch.stack([*(2 * one / (1 + squared) for one in z), (squared - 1) / (1 + squared)])

    assert_close(project(x).square().sum(), torch.ones((), dtype=dtype), **tolerance(dtype))
    w = kernel.share_logits.softmax(0)
    expected = (w[0] + w[1] * (project(x) * project(y)).sum()).reshape(1, 1)
    x, y = x.unsqueeze(0), y.unsqueeze(0)
    assert_close(read_kernel(kernel).matrix(x, y), expected, **tolerance(dtype))
    assert_close(kernel(x, y).to_dense(), expected, **tolerance(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_variance_is_one_everywhere(rng, dtype):
    kernel, X = make(rng, dtype), torch.rand(5, 3, generator=rng, dtype=dtype)
    assert_close(read_kernel(kernel).diagonal(X), torch.ones(5, dtype=dtype), **tolerance(dtype))
    assert_close(kernel(X, diag=True), kernel(X).to_dense().diagonal(), **tolerance(dtype))


def test_rank_is_at_most_two_more_than_the_dimension(rng):
    kernel, X = make(rng, torch.float64), torch.rand(20, 3, generator=rng, dtype=torch.float64)
    assert torch.linalg.matrix_rank(kernel(X).to_dense()) == 5


def test_as_many_inducing_points_as_features_equal_linear_regression(rng):
    kernel, X = make(rng, torch.float64), torch.rand(40, 3, generator=rng, dtype=torch.float64)
    y, new = X.square().sum(-1), torch.rand(6, 3, generator=rng, dtype=torch.float64)
    kernel.requires_grad_(False)
    fitted = sg.fit(X, y, kernel=kernel, likelihood=sg.likelihoods.Gaussian(0.01, is_learned=False), num_inducing=5)
    K, k = kernel(X).to_dense() + 0.01 * torch.eye(40), kernel(new, X).to_dense()
    constant = fitted.gp.mean.constant
    predicted = fitted.gp.predict(new)
    # Exact but for the jitter of the inducing points, 1e-8 of the variance, which moves what is inverted by as much.
    limits = approximation(1e-8 * float(torch.linalg.cond(K.detach())), "jitter")
    assert_close(predicted.mean, constant + k @ torch.linalg.solve(K, y - constant), **limits)
    assert_close(predicted.variance, 1.0 - (k * torch.linalg.solve(K, k.mT).mT).sum(-1), **limits)


def test_another_box_gives_the_same_kernel_in_its_units(rng):
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    lower, upper = torch.tensor([[-1.0, 5.0], [3.0, 6.0]], dtype=torch.float64)
    one = SphericalLinearKernel(2).within(torch.zeros_like(lower), torch.ones_like(lower))
    other = SphericalLinearKernel(2).within(lower, upper)
    assert_close(other(lower + (upper - lower) * X).to_dense(), one(X).to_dense())


def test_gradients_reach_inputs_and_hyperparameters(rng):
    kernel = make(rng, torch.float64)
    X = torch.rand(3, 3, generator=rng, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: read_kernel(kernel).matrix(x, x), X)
    read_kernel(kernel).matrix(X, X.detach())[0, 1].backward()
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in kernel.parameters())


def test_model_comes_back_from_a_file(rng, tmp_path):
    X = torch.rand(12, 2, generator=rng, dtype=torch.float64)
    gp = sg.fit(X, X.sum(-1), kernel="spherical_linear", num_inducing=6, max_iterations=3).gp
    gp.save(tmp_path / "gp")
    again = sg.load(tmp_path / "gp")
    assert torch.equal(again.predict(X).mean, gp.predict(X).mean)
    assert again.kernel.base_kernel.lower.tolist() == X.amin(0).tolist()
