"""Sites that match moments: against sampling, and where other rules fail."""

import math

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import StreamGPWarning
from streamgp.likelihoods import Bernoulli, Censored, Gaussian, Ordinal, Poisson, StudentT
from streamgp.sites import DenseBelief, FactoredBelief, SiteRule, find_sites
from streamgp.sites.moments import predictive_derivatives
from streamgp.testing.tolerances import approximation, judgement, tolerance

RULE = SiteRule("moments")


def belief_of(rng, k, dtype=torch.float64, slack=None):
    A = torch.randn(k, k, generator=rng, dtype=torch.float64).to(dtype)
    return DenseBelief(torch.randn(k, generator=rng, dtype=torch.float64).to(dtype), A @ A.mT / k, slack)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_of_a_gaussian_they_are_its_observations(rng, dtype):
    y = torch.randn(4, generator=rng, dtype=torch.float64).to(dtype)
    sites, info = find_sites(belief_of(rng, 4, dtype), Censored(0.3), y, RULE)
    assert bool(info.is_converged)
    assert_close(sites.targets, y, **tolerance(dtype))
    assert_close(sites.variance, torch.full_like(y, 0.3), **tolerance(dtype))


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [(Bernoulli("probit"), 1.0), (Ordinal([-1.0, 0.3]), 1.0), (Censored(1e-4, lower=0.5), 0.5), (Poisson(), 4.0)],
)
def test_one_observation_has_the_exact_moments(likelihood, y):
    mean, variance = torch.tensor([[-0.7], [1.4]], dtype=torch.float64)
    observed = torch.tensor([y], dtype=torch.float64)
    sites, _ = find_sites(DenseBelief(mean, variance.reshape(1, 1)), likelihood, observed, RULE)
    f = torch.linspace(-12.0, 12.0, 200_001, dtype=torch.float64)
    density = (likelihood.log_density(f, observed) - 0.5 * (f - mean).square() / variance).exp()
    center = (f * density).sum() / density.sum()
    spread = ((f - center).square() * density).sum() / density.sum()
    precision = 1 / variance + 1 / sites.variance
    limits = approximation(1e-4, "quadrature")
    assert_close(1 / precision, spread.reshape(1), **limits)
    assert_close((mean / variance + sites.targets / sites.variance) / precision, center.reshape(1), **limits)


def test_both_forms_of_a_belief_have_the_same_sites_with_slack(rng):
    W = torch.randn(2, 5, generator=rng, dtype=torch.float64)
    mean, slack = torch.zeros(5, dtype=torch.float64), torch.rand(5, generator=rng, dtype=torch.float64)
    y = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0], dtype=torch.float64)
    dense, factored = DenseBelief(mean, W.mT @ W, slack), FactoredBelief(mean, W, slack)
    one, other = (find_sites(each, Bernoulli("probit"), y, RULE)[0] for each in (dense, factored))
    assert_close(one.targets, other.targets, **approximation(1e-5, "iteration"))
    assert_close(one.variance, other.variance, **approximation(1e-5, "iteration"))


@pytest.mark.parametrize("steepness", [1.0, 10.0, 100.0])
def test_signs_of_slopes_have_the_moments_of_importance_sampling(rng, steepness):
    """Variational sites fail for some of these, and those of Laplace are off by half a deviation."""
    kernel = RBFKernel().double()
    gp = sg.SparseGP.from_prior(kernel, torch.linspace(-2, 2, 9, dtype=torch.float64).unsqueeze(-1))
    x = torch.tensor([[-0.9], [-0.3], [0.3], [0.9]], dtype=torch.float64)
    slopes = sg.evidence.derivative(x, [steepness])
    signs = torch.ones(4, dtype=torch.float64)
    after = gp.condition(slopes, signs, likelihood=Bernoulli("probit"), sites="moments").predict(slopes)
    samples = gp.sample(slopes, 200_000, generator=rng)
    weights = torch.special.ndtr(samples).prod(-1)
    mean = (weights.unsqueeze(-1) * samples).sum(0) / weights.sum()
    deviation = ((weights.unsqueeze(-1) * (samples - mean).square()).sum(0) / weights.sum()).sqrt()
    assert float(((after.mean - mean) / deviation).abs().max()) < 0.05
    assert float((after.std / deviation - 1.0).abs().max()) < 0.05


@pytest.mark.parametrize("likelihood", [StudentT(4.0, 0.5), Poisson(), Bernoulli()])
def test_likelihoods_without_closed_moments_have_those_of_quadrature(rng, likelihood):
    m = torch.randn(5, generator=rng, dtype=torch.float64, requires_grad=True)
    v = torch.full((5,), 0.3, dtype=torch.float64)
    y = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0], dtype=torch.float64)
    first, second = predictive_derivatives(likelihood, m, v, y)
    density = likelihood.log_predictive_density(m, v, y)
    (expected,) = torch.autograd.grad(density.sum(), m, create_graph=True)
    assert_close(first, expected, **approximation(1e-4, "quadrature"))
    (expected,) = torch.autograd.grad(expected.sum(), m)
    assert_close(second, expected, **approximation(1e-3, "quadrature"))


def test_fantasies_share_nothing_but_the_belief(rng):
    belief = belief_of(rng, 3)
    y = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    together, _ = find_sites(belief, Bernoulli("probit"), y, RULE)
    for i in range(2):
        alone, _ = find_sites(belief, Bernoulli("probit"), y[i], RULE)
        assert_close(together.targets[i], alone.targets, **approximation(1e-5, "iteration"))


def test_gradients_are_those_of_the_fixed_point(rng):
    gp = sg.SparseGP.from_prior(RBFKernel().double(), torch.rand(4, 1, generator=rng, dtype=torch.float64))
    X = torch.rand(3, 1, generator=rng, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    rule = SiteRule("moments", tolerance=1e-12)

    def mean(X):
        return gp.condition(X, y, likelihood=Bernoulli("probit"), sites=rule).predict(X.detach()[:1] * 0 + 0.4).mean

    assert torch.autograd.gradcheck(mean, (X,))


def test_an_observation_that_says_nothing_leaves_the_belief(rng):
    belief = belief_of(rng, 2)
    open_ended = Censored(1.0, lower=-math.inf, upper=1e6, is_between=1.0)
    sites, _ = find_sites(belief, open_ended, torch.zeros(2, dtype=torch.float64), RULE)
    assert bool((sites.variance > 1e6 * belief.variance()).all())


def test_a_gaussian_likelihood_needs_no_sites(rng):
    gp = sg.SparseGP.from_prior(RBFKernel().double(), torch.rand(4, 1, generator=rng, dtype=torch.float64))
    X, y = torch.rand(3, 1, generator=rng, dtype=torch.float64), torch.randn(3, generator=rng, dtype=torch.float64)
    one, two = (gp.condition(X, y, likelihood=Gaussian(0.1), sites=rule) for rule in ("moments", "variational"))
    assert torch.equal(one.predict(X).mean, two.predict(X).mean)


def test_an_outlier_moves_the_mean_and_widens_nothing():
    C = (0.9 * torch.ones(3, 3) + 0.1 * torch.eye(3)).double()
    y = torch.tensor([0.1, 0.0, 6.0], dtype=torch.float64)
    sites, info = find_sites(DenseBelief(torch.zeros_like(y), C), StudentT(3.0, 0.2), y, RULE)
    assert bool(info.is_converged)
    assert info.num_negative == 1
    assert sites.variance[2] > 1e7
    others, _ = find_sites(DenseBelief(torch.zeros_like(y[:2]), C[:2, :2]), StudentT(3.0, 0.2), y[:2], RULE)
    assert_close(sites.targets[:2], others.targets, **judgement(absolute=1e-2))


def test_signs_that_push_alike_are_found_in_as_many_steps_as_it_takes():
    C = 100.0 * (torch.ones(30, 30) + 1e-3 * torch.eye(30)).double()
    belief, y = DenseBelief(torch.zeros(30, dtype=torch.float64), C), torch.ones(30, dtype=torch.float64)
    _, info = find_sites(belief, Bernoulli("probit"), y, RULE)
    assert bool(info.is_converged)
    assert info.num_iterations > 40  # where other rules go on in double precision
    with pytest.warns(StreamGPWarning, match="did not converge in 50 steps"):
        find_sites(belief, Bernoulli("probit"), y, SiteRule("moments", max_iterations=50))
