import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from tests.support.problems import random_observations
from torch.distributions import MultivariateNormal, kl_divergence
from torch.testing import assert_close

from streamgp.likelihoods import Gaussian
from streamgp.testing.tolerances import tolerance
from streamgp.training.collapsed import collapsed_bound
from streamgp.training.features import Observed
from streamgp.training.parameters import Hyperparameters, hyperparameter_space
from streamgp.training.result import optimal_process
from streamgp.training.uncollapsed import (
    BELIEF_MEAN,
    BELIEF_ROOT,
    belief_of,
    divergence,
    pack_belief,
    uncollapsed_bound,
)

FREE = (-float("inf"), float("inf"))


@pytest.fixture
def problem(rng):
    new = random_observations(rng, num_observations=9)
    data = Observed(new.inputs, new.targets)
    Z = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    kernel, mean = ScaleKernel(MaternKernel(2.5, ard_num_dims=2)).double(), ConstantMean().double()
    setting = Hyperparameters(kernel, mean, Gaussian(0.2), Z, {})
    process = optimal_process(setting, data)
    return (
        Hyperparameters(kernel, mean, Gaussian(0.2), Z, pack_belief(process.whitened_mean, process.whitened_root)),
        data,
        process,
    )


def test_packing_a_belief_keeps_it(problem):
    setting, _, process = problem
    m, R = belief_of(setting)
    assert_close(m, process.whitened_mean)
    assert_close(R @ R.mT, process.whitened_root @ process.whitened_root.mT)
    assert torch.equal(R, R.tril())


def test_at_the_optimal_belief_it_equals_the_collapsed_bound(problem):
    setting, data, _ = problem
    expected = collapsed_bound(setting, data, setting.likelihood.noise_variance)
    assert_close(uncollapsed_bound(setting, data, objective="elbo", beta=1.0), expected, **tolerance(torch.float64))


def test_the_divergence_is_that_of_the_gaussians(problem):
    m, R = belief_of(problem[0])
    eye = torch.eye(len(m), dtype=m.dtype)
    expected = kl_divergence(MultivariateNormal(m, scale_tril=R), MultivariateNormal(torch.zeros_like(m), eye))
    assert_close(divergence(m, R), expected)


def test_the_predictive_objective_is_never_below_the_bound(problem):
    setting, data, _ = problem
    pll, elbo = (uncollapsed_bound(setting, data, objective=name, beta=1.0) for name in ("pll", "elbo"))
    assert pll >= elbo


@pytest.mark.parametrize("objective", ["elbo", "pll"])
def test_its_gradient_is_right(problem, objective):
    setting, data, _ = problem
    space = hyperparameter_space(setting, learn_inducing=True, extra={BELIEF_MEAN: FREE, BELIEF_ROOT: FREE})
    x = space.start.clone().requires_grad_(True)

    def bound(x):
        return space.evaluate(x, lambda s: uncollapsed_bound(s, data, objective=objective, beta=0.7))

    assert torch.autograd.gradcheck(bound, [x])
