import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods import Bernoulli, Gaussian, Poisson
from streamgp.sites import DenseBelief, SiteRule
from streamgp.sites.iteration import improve, iterate
from streamgp.testing.tolerances import approximation, tolerance

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


def test_nothing_is_done_where_nothing_was_observed():
    nothing = DenseBelief(torch.zeros(0, dtype=torch.float64), torch.zeros(0, 0, dtype=torch.float64))
    x, _, _, num_iterations, is_converged, _, _ = iterate(nothing, Poisson(), nothing.mean, RULE)
    assert x.shape == (2, 0)
    assert num_iterations == 0
    assert bool(is_converged)
