import math

import pytest
import torch
from gpytorch.kernels import MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from streamgp.likelihoods import Gaussian
from streamgp.testing.tolerances import evidence_jitter, tolerance
from streamgp.training.collapsed import Sums, collapse, collapsed_bound, exact_evidence, gaussian_bound, sum_batches
from streamgp.training.features import Moments, Observed
from streamgp.training.parameters import Hyperparameters, hyperparameter_space

JITTER = 1e-8


def random_setting(rng, *, kernel=None, num_inducing=5):
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=2)) if kernel is None else kernel
    kernel, mean = kernel.double(), ConstantMean().double()
    mean.initialize(constant=0.3)
    Z = torch.rand(num_inducing, 2, generator=rng, dtype=torch.float64)
    return Hyperparameters(kernel, mean, Gaussian(0.2), Z, {})


def random_data(rng, num_data=12):
    X = torch.rand(num_data, 2, generator=rng, dtype=torch.float64)
    return Observed(X, torch.randn(num_data, generator=rng, dtype=torch.float64), JITTER)


def dense_bound(setting, data, noise):
    """Titsias' bound from whole matrices."""
    kernel, Z, X = setting.kernel, setting.inducing_points, data.inputs
    K = kernel(Z).to_dense()
    K = K + JITTER * K.diagonal().mean() * torch.eye(len(Z))
    Q = kernel(X, Z).to_dense() @ torch.linalg.solve(K, kernel(Z, X).to_dense())
    noise = noise.expand(len(X))
    log_density = MultivariateNormal(setting.mean(X), Q + noise.diag()).log_prob(data.targets)
    return log_density - 0.5 * ((kernel(X).to_dense() - Q).diagonal() / noise).sum()


@pytest.mark.parametrize(
    "kernel",
    [ScaleKernel(MaternKernel(2.5, ard_num_dims=2)), RBFKernel(), ScaleKernel(PeriodicKernel()) + RBFKernel()],
)
@pytest.mark.parametrize("noise", [torch.tensor(0.2), torch.linspace(0.1, 0.4, 12)])
def test_the_bound_equals_the_dense_reference(rng, kernel, noise):
    setting, data, noise = random_setting(rng, kernel=kernel), random_data(rng), noise.double()
    assert_close(collapsed_bound(setting, data, noise), dense_bound(setting, data, noise), **tolerance(torch.float64))


def test_with_inducing_points_at_all_inputs_it_equals_the_log_marginal_likelihood(rng):
    data = random_data(rng)
    setting = random_setting(rng)
    setting = Hyperparameters(setting.kernel, setting.mean, setting.likelihood, data.inputs, {})
    covariance = setting.kernel(data.inputs).to_dense() + 0.2 * torch.eye(12)
    exact = MultivariateNormal(setting.mean(data.inputs), covariance).log_prob(data.targets)
    bound = collapsed_bound(setting, data, torch.tensor(0.2, dtype=torch.float64))
    assert bound <= exact
    jitter = JITTER * setting.kernel.outputscale.item()
    assert_close(bound, exact, **evidence_jitter(covariance, data.targets - setting.mean(data.inputs), jitter))


@pytest.mark.parametrize("beta", [1.0, 0.3])
@pytest.mark.parametrize("noise_shape", [(), (7,)])
@pytest.mark.parametrize("targets_shape", [(7,), (2, 7)])
def test_the_gradient_by_hand_is_that_of_the_bound(rng, beta, noise_shape, targets_shape):
    targets = torch.randn(targets_shape, generator=rng, dtype=torch.float64)
    root = torch.randn(4, 4, generator=rng, dtype=torch.float64)

    def bound(root, cross, variance, mean, noise):
        # Symmetric by construction, as a kernel matrix is.
        moments = Moments(root @ root.mT + torch.eye(4), cross, variance, mean)
        return gaussian_bound(moments, targets, noise.exp(), beta=beta)

    arguments = [
        root,
        torch.randn(4, 7, generator=rng, dtype=torch.float64),
        3.0 + torch.rand(7, generator=rng, dtype=torch.float64),
        torch.randn(7, generator=rng, dtype=torch.float64),
        torch.randn(noise_shape, generator=rng, dtype=torch.float64),
    ]
    assert torch.autograd.gradcheck(bound, [argument.requires_grad_(True) for argument in arguments])


def test_gradients_reach_all_that_is_learned(rng):
    setting, data = random_setting(rng), random_data(rng)
    space = hyperparameter_space(setting, learn_inducing=True)

    def bound(x):
        return space.evaluate(x, lambda s: collapsed_bound(s, data, s.likelihood.noise_variance))

    x = space.start.clone().requires_grad_(True)
    assert len(x) == 2 + 1 + 1 + 1 + 10
    assert torch.autograd.gradcheck(bound, [x])
    (gradient,) = torch.autograd.grad(bound(x), x)
    assert (gradient != 0).all()


@pytest.mark.parametrize("beta", [0.2, 1.0, 3.0])
def test_a_temperature_equals_the_weighted_objective_at_its_best_belief(rng, beta):
    setting, data = random_setting(rng), random_data(rng)
    noise = torch.tensor(0.2, dtype=torch.float64)
    kernel, Z, X = setting.kernel, setting.inducing_points, data.inputs
    K = kernel(Z).to_dense()
    L = torch.linalg.cholesky(K + JITTER * K.diagonal().mean() * torch.eye(len(Z)))
    phi = torch.linalg.solve(L, kernel(Z, X).to_dense())
    # The best belief under observations of noise variance beta * 0.2.
    S = torch.linalg.inv(torch.eye(len(Z)) + phi @ phi.mT / (beta * noise))
    m = S @ phi @ (data.targets - setting.mean(X)) / (beta * noise)
    residual = data.targets - setting.mean(X) - phi.mT @ m
    variance = (kernel(X).to_dense() - phi.mT @ phi + phi.mT @ S @ phi).diagonal()
    fit = -0.5 * ((residual.square() + variance) / noise + torch.log(2 * math.pi * noise)).sum()
    divergence = 0.5 * (S.trace() + m @ m - len(m) - torch.logdet(S))
    expected = fit - beta * divergence
    assert_close(collapsed_bound(setting, data, noise, beta=beta), expected, **tolerance(torch.float64))


@pytest.mark.parametrize("noise", [Gaussian(0.2), Gaussian(torch.linspace(0.1, 0.4, 12, dtype=torch.float64))])
def test_the_exact_evidence_is_a_dense_log_density_with_its_gradient(rng, noise):
    setting, data = random_setting(rng), random_data(rng)
    setting = Hyperparameters(setting.kernel, setting.mean, noise, setting.inducing_points, {})
    variance = noise.noise_variance.double().expand(12)
    covariance = setting.kernel(data.inputs).to_dense() + variance.diag()
    expected = MultivariateNormal(setting.mean(data.inputs), covariance).log_prob(data.targets)
    assert_close(exact_evidence(setting, data), expected, **tolerance(torch.float64))
    space = hyperparameter_space(setting)
    x = space.start.clone().requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: space.evaluate(x, lambda s: exact_evidence(s, data)), [x])


def test_sums_under_another_noise_are_the_sums_divided(rng):
    setting, data = random_setting(rng), random_data(rng)
    other = Hyperparameters(setting.kernel, setting.mean, Gaussian(0.5), setting.inducing_points, {})
    divided, anew = sum_batches(setting, [data]).with_noise(2.5), sum_batches(other, [data])
    for name in Sums._fields:
        assert_close(
            torch.as_tensor(getattr(divided, name)), torch.as_tensor(getattr(anew, name)), **tolerance(torch.float64)
        )
    expected = collapsed_bound(other, data, other.likelihood.noise_variance)
    assert_close(collapse(divided).bound, expected, **tolerance(torch.float64))
