import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch.testing import assert_close

from streamgp.evidence import difference
from streamgp.likelihoods import Bernoulli, Gaussian, HeteroskedasticGaussian, Poisson, Preference, Softmax, StudentT
from streamgp.testing.tolerances import approximation, regression_condition, rounding, tolerance
from streamgp.training.collapsed import collapsed_bound
from streamgp.training.features import Observed, observed_features
from streamgp.training.parameters import Hyperparameters, hyperparameter_space
from streamgp.training.sites_bound import optimal_sites, sites_bound


def random_setting(rng, likelihood, num_inducing=5):
    kernel, mean = ScaleKernel(MaternKernel(2.5, ard_num_dims=2)).double(), ConstantMean().double()
    mean.initialize(constant=0.4)
    return Hyperparameters(
        kernel, mean, likelihood, torch.rand(num_inducing, 2, generator=rng, dtype=torch.float64), {}
    )


def random_data(rng, targets):
    X = torch.rand(len(targets), 2, generator=rng, dtype=torch.float64)
    return Observed(X, torch.as_tensor(targets, dtype=torch.float64))


COUNTS = [0, 1, 0, 3, 2, 1, 0, 5, 1, 2]
CASES = [
    (Gaussian(0.3), [0.1, -1.0, 2.0, 0.5, 0.7, -0.2, 0.3, 1.0, 0.0, 1.5]),
    (Bernoulli(), [0, 1, 1, 0, 1, 0, 0, 1, 1, 1]),
    (Poisson(), COUNTS),
    (StudentT(), [0.1, -1.0, 9.0, 0.5, 0.7, -0.2, 0.3, 1.0, 0.0, 1.5]),
]


@pytest.mark.parametrize("num_inducing", [5, 14])
def test_for_gaussian_observations_it_equals_the_collapsed_bound(rng, num_inducing):
    setting, data = random_setting(rng, CASES[0][0], num_inducing), random_data(rng, CASES[0][1])
    sites, is_converged = optimal_sites(setting, data)
    assert is_converged
    expected = collapsed_bound(setting, data, torch.tensor(0.3, dtype=torch.float64))
    same = rounding(torch.float64, condition=regression_condition(10, 0.3))
    assert_close(sites_bound(setting, data, sites), expected, **same)


@pytest.mark.parametrize(("likelihood", "targets"), CASES)
def test_it_equals_the_dense_bound_at_the_belief_of_its_sites(rng, likelihood, targets):
    setting, data = random_setting(rng, likelihood), random_data(rng, targets)
    sites, _ = optimal_sites(setting, data)
    features = observed_features(setting, data)
    phi, mu = features.phi, features.mean
    S = torch.linalg.inv(torch.eye(5) + phi @ sites.precision.diag() @ phi.mT)
    m = S @ phi @ (sites.pull - sites.precision * mu)
    variance = features.slack + (phi * (S @ phi)).sum(0)
    fit = likelihood.expected_log_density(mu + phi.mT @ m, variance, data.targets).sum()
    divergence = 0.5 * (S.trace() + m @ m - 5 - torch.logdet(S))
    assert_close(sites_bound(setting, data, sites), fit - divergence, **tolerance(torch.float64))


@pytest.mark.parametrize(("likelihood", "targets"), CASES)
def test_its_gradient_is_right_in_all_that_is_learned(rng, likelihood, targets):
    setting, data = random_setting(rng, likelihood), random_data(rng, targets)
    sites, _ = optimal_sites(setting, data)
    space = hyperparameter_space(setting, learn_inducing=True)
    x = space.start.clone().requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: space.evaluate(x, lambda s: sites_bound(s, data, sites)), [x])


@pytest.mark.parametrize(("likelihood", "targets"), CASES[1:3])
def test_optimal_sites_are_stationary(rng, likelihood, targets):
    setting, data = random_setting(rng, likelihood), random_data(rng, targets)
    sites, _ = optimal_sites(setting, data, tolerance=1e-9)
    free = [value.clone().requires_grad_(True) for value in sites]
    gradients = torch.autograd.grad(sites_bound(setting, data, type(sites)(*free)), free)
    for gradient in gradients:
        assert gradient.abs().max() < 1e-6


def test_comparisons_are_differences_of_the_latent_function(rng):
    setting = random_setting(rng, Preference())
    first, second = (torch.rand(6, 2, generator=rng, dtype=torch.float64) for _ in range(2))
    data = Observed(difference(first, second), torch.ones(6, dtype=torch.float64))
    features = observed_features(setting, data)
    one, other = (observed_features(setting, Observed(X, data.targets)) for X in (first, second))
    assert_close(features.phi, one.phi - other.phi)
    assert_close(features.mean, torch.zeros(6, dtype=torch.float64))
    cross = setting.kernel(first, second).to_dense() - one.phi.mT @ other.phi
    assert_close(features.slack, one.slack + other.slack - 2 * cross.diagonal(), **tolerance(torch.float64))


SEVERAL = [
    (HeteroskedasticGaussian(), [0.1, -1.0, 2.0, 0.5, 0.7, -0.2, 0.3, 1.0, 0.0, 1.5]),
    (Softmax(3), [0, 1, 2, 2, 1, 0, 0, 1, 2, 1]),
]


def several_latents(rng, likelihood, num_inducing=5):
    shape = torch.Size([likelihood.num_latents])
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=2, batch_shape=shape), batch_shape=shape).double()
    kernel.base_kernel.lengthscale = 0.3 + torch.rand(*shape, 1, 2, generator=rng, dtype=torch.float64)
    kernel.outputscale = 0.5 + torch.rand(shape, generator=rng, dtype=torch.float64)
    mean = ConstantMean(batch_shape=shape).double()
    mean.initialize(constant=torch.linspace(-0.5, 0.4, *shape, dtype=torch.float64))
    points = torch.rand(num_inducing, 2, generator=rng, dtype=torch.float64)
    return Hyperparameters(kernel, mean, likelihood, points, {})


@pytest.mark.parametrize(("likelihood", "targets"), SEVERAL)
def test_several_latent_functions_have_a_divergence_each(rng, likelihood, targets):
    setting, data = several_latents(rng, likelihood), random_data(rng, targets)
    sites, is_converged = optimal_sites(setting, data)
    assert is_converged
    Z, X, divergence, moments = setting.inducing_points, data.inputs, 0.0, []
    for c in range(likelihood.num_latents):
        kernel, mu = setting.kernel[c], setting.mean.constant[c]
        K = kernel(Z).to_dense()
        K = K + data.jitter * setting.kernel.outputscale.mean() * torch.eye(5)
        cross, tau = kernel(Z, X).to_dense(), sites.precision[c]
        explained = torch.linalg.solve(K, cross)
        S = torch.linalg.inv(torch.linalg.inv(K) + explained @ tau.diag() @ explained.mT)
        m = S @ explained @ (sites.pull[c] - tau * mu)
        divergence = divergence + 0.5 * (
            torch.linalg.solve(K, S).trace() + m @ torch.linalg.solve(K, m) - 5 + torch.logdet(K) - torch.logdet(S)
        )
        variance = kernel(X, diag=True) - (cross * explained).sum(0) + (explained * (S @ explained)).sum(0)
        moments.append((mu + explained.mT @ m, variance))
    mean, variance = (torch.stack(each) for each in zip(*moments, strict=True))
    fit = likelihood.expected_log_density(mean, variance, data.targets).sum()
    assert_close(sites_bound(setting, data, sites), fit - divergence, **tolerance(torch.float64))


@pytest.mark.parametrize(("likelihood", "targets"), SEVERAL)
def test_at_the_sites_of_several_its_gradient_is_that_of_the_optimal_bound(rng, likelihood, targets):
    setting, data = several_latents(rng, likelihood), random_data(rng, targets)
    space, step = hyperparameter_space(setting, learn_inducing=True), 1e-5
    x = space.start.requires_grad_(True)
    sites, _ = optimal_sites(setting, data, tolerance=1e-11)
    (gradient,) = torch.autograd.grad(space.evaluate(x, lambda s: sites_bound(s, data, sites)), x)

    def optimal(x):
        setting = space.setting(x)
        return sites_bound(setting, data, optimal_sites(setting, data, tolerance=1e-11)[0])

    ends = [(optimal(x.detach() + step * e), optimal(x.detach() - step * e)) for e in torch.eye(len(x)).double()]
    slopes = torch.stack([(above - below) / (2 * step) for above, below in ends]).detach()
    assert_close(gradient, slopes, **approximation(1e-6, "finite differences"))
