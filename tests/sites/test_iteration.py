import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods import Bernoulli, Censored, Gaussian, HeteroskedasticGaussian, Poisson, Softmax
from streamgp.sites import DenseBelief, SiteRule
from streamgp.sites.rules import _objective, improve, iterate
from streamgp.testing.tolerances import approximation, rounding, tolerance

RULE = SiteRule("variational", tolerance=1e-10)


@pytest.fixture
def belief(rng):
    root = torch.randn(4, 4, generator=rng, dtype=torch.float64)
    return DenseBelief(torch.randn(4, generator=rng, dtype=torch.float64), root @ root.mT / 4 + torch.eye(4))


@pytest.mark.parametrize("rule", ["variational", "laplace"])
def test_one_step_from_anywhere_leads_to_the_site_of_a_gaussian_observation(rng, belief, rule):
    y = torch.randn(4, generator=rng, dtype=torch.float64)
    x = torch.rand(2, 4, generator=rng, dtype=torch.float64)
    pull, precision = improve(belief, Gaussian(0.5), y, SiteRule(rule), x).state
    assert_close(precision, torch.full_like(y, 2.0), **tolerance(torch.float64))
    assert_close(pull, 2.0 * (y - belief.mean), **tolerance(torch.float64, scale=10.0))


@pytest.mark.parametrize("likelihood", [Poisson(), Bernoulli()], ids=["counts", "classes"])
def test_the_iteration_ends_where_a_step_leads_nowhere(belief, likelihood):
    y = torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=torch.float64)
    x, _, _, num_iterations, is_converged, residual, num_negative = iterate(belief, likelihood, y, RULE)
    assert_close(improve(belief, likelihood, y, RULE, x).state, x, **approximation(1e-8, "iteration"))
    assert 0 < num_iterations < RULE.max_iterations
    assert bool(is_converged)
    assert float(residual) <= RULE.tolerance
    assert num_negative == 0


def several(rng, num_latents, k=4, *, scale=1.0):
    root = torch.randn(num_latents, k, k, generator=rng, dtype=torch.float64)
    mean = torch.randn(num_latents, k, generator=rng, dtype=torch.float64)
    return DenseBelief(mean, scale * (root @ root.mT / k + torch.eye(k)))


OF_SEVERAL = {
    "classes": (Softmax(3), torch.tensor([0.0, 2.0, 1.0, 2.0], dtype=torch.float64)),
    "noise": (HeteroskedasticGaussian(), torch.tensor([0.3, -1.0, 2.0, 0.1], dtype=torch.float64)),
}


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_sites_of_several_latent_functions_end_where_a_step_leads_nowhere(rng, name):
    likelihood, y = OF_SEVERAL[name]
    belief = several(rng, likelihood.num_latents)
    found = iterate(belief, likelihood, y, RULE)
    assert_close(
        improve(belief, likelihood, y, RULE, found.state).state, found.state, **approximation(1e-7, "iteration")
    )
    assert found.is_converged.shape == found.residual.shape == (likelihood.num_latents,)
    assert bool(found.is_converged.all())
    # One after the other, by the plain iteration, they are the same.
    x = found.state.clone() * 0.9
    for _ in range(300):
        x = x + 0.5 * (improve(belief, likelihood, y, RULE, x).state - x)
    assert_close(x, found.state, **approximation(1e-6, "iteration"))


def test_steep_softmax_sites_are_found_in_few_steps(rng):
    likelihood, y = OF_SEVERAL["classes"]
    found = iterate(several(rng, 3, scale=50.0), likelihood, y, RULE)
    assert found.num_iterations < 60  # hundreds without extrapolation


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_latent_functions_of_one_observation_take_their_steps_together(rng, name):
    likelihood, y = OF_SEVERAL[name]
    belief = several(rng, likelihood.num_latents, scale={"classes": 1e8, "noise": 30.0}[name])
    x = torch.stack([torch.zeros_like(belief.mean), 1e-9 * torch.ones_like(belief.mean)])
    step = improve(belief, likelihood, y, RULE, x)
    first, second = likelihood.expected_derivatives(step.mean, step.updated.spread, y)
    size = step.updated.variance
    precision = torch.maximum(-second, 1e-8 / belief.variance())
    gain = (precision * size).max()
    assert gain > 1e3
    assert_close(step.step_limit, (1e3 / gain).expand(likelihood.num_latents))
    apart = torch.maximum((first - step.updated.gradient).abs() * size.sqrt(), (precision - x[1]).abs() * size)
    assert_close(step.residual, apart.max().expand(likelihood.num_latents))
    assert torch.equal(step.num_negative, (second > 0).sum(-1))


@pytest.mark.parametrize("rule", ["variational", "laplace"])
@pytest.mark.parametrize("likelihood", [Poisson(), Softmax(3)], ids=["one", "several"])
def test_the_objective_is_the_bound_or_the_log_posterior_density(rng, likelihood, rule):
    num_latents, y = likelihood.num_latents, torch.tensor([0.0, 2.0, 1.0, 2.0], dtype=torch.float64)
    belief = several(rng, num_latents)
    if num_latents == 1:
        belief = DenseBelief(belief.mean[0], belief.covariance[0])
    x = torch.rand(2, *belief.mean.shape, generator=rng, dtype=torch.float64)
    step = improve(belief, likelihood, y, SiteRule(rule), x)
    found = _objective(likelihood, y, SiteRule(rule), x, step)
    before = torch.distributions.MultivariateNormal(belief.mean, belief.covariance)
    C = torch.linalg.inv(torch.linalg.inv(belief.covariance) + torch.diag_embed(x[1]))
    mean = belief.mean + (C @ x[0].unsqueeze(-1)).squeeze(-1)
    after = torch.distributions.MultivariateNormal(mean, C)
    if rule == "variational":
        expected = likelihood.expected_log_density(mean, C.diagonal(dim1=-2, dim2=-1), y).sum()
        expected = expected - torch.distributions.kl_divergence(after, before).sum()
    else:
        expected = (
            likelihood.log_density(mean, y).sum() + before.log_prob(mean).sum() - before.log_prob(belief.mean).sum()
        )
    assert_close(found, expected.expand(found.shape), **tolerance(torch.float64, scale=10.0))


@pytest.mark.parametrize("rule", ["variational", "laplace", "moments"])
@pytest.mark.parametrize("unit", [1e-3, 40.0])
def test_a_step_does_not_hang_on_the_unit_of_latent_values(rng, belief, rule, unit):
    y = torch.tensor([-0.3, 0.4, -0.3, 2.0], dtype=torch.float64)
    x = torch.rand(2, 4, generator=rng, dtype=torch.float64)
    units = torch.tensor([[1.0 / unit], [1.0 / unit**2]], dtype=torch.float64)
    one = improve(belief, Censored(0.5, lower=-0.3), y, SiteRule(rule), x)
    scaled = DenseBelief(unit * belief.mean, unit**2 * belief.covariance)
    other = improve(scaled, Censored(0.5 * unit**2, lower=-0.3 * unit), unit * y, SiteRule(rule), units * x)
    assert_close(other.state, units * one.state, **rounding(torch.float64, condition=1e3))
    assert_close(other.residual, one.residual, **rounding(torch.float64, condition=1e3))
    assert_close(other.step_limit, one.step_limit)
    assert one.residual > 0.1


def test_nothing_is_done_where_nothing_was_observed():
    nothing = DenseBelief(torch.zeros(0, dtype=torch.float64), torch.zeros(0, 0, dtype=torch.float64))
    x, _, _, num_iterations, is_converged, _, _ = iterate(nothing, Poisson(), nothing.mean, RULE)
    assert x.shape == (2, 0)
    assert num_iterations == 0
    assert bool(is_converged)
