import math

import gpytorch
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ConvergenceError, NumericalError, StreamGPWarning
from streamgp.likelihoods import (
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Poisson,
    Preference,
    StudentT,
    Volatility,
    from_gpytorch,
)
from streamgp.sites import DenseBelief, FactoredBelief, SiteRule, Sites, find_sites
from streamgp.sites.single import _ScalarProblem, find_single_site
from streamgp.testing.tolerances import judgement, within

LIKELIHOODS = {
    "gaussian": (Gaussian(0.3), (-1.0, 4.0)),
    "logit": (Bernoulli(), (0.0, 1.0)),
    "probit": (Bernoulli("probit"), (0.0, 1.0)),
    "binomial": (Binomial(torch.tensor([7.0])), (0.0, 3.0, 7.0)),
    "poisson": (Poisson(2.0), (0.0, 3.0, 1e5)),
    "negative binomial": (NegativeBinomial(0.7), (0.0, 3.0, 200.0)),
    "preference": (Preference(0.5), (0.0, 1.0)),
    "student t": (StudentT(), (0.1, 9.0)),
    "volatility": (Volatility(), (0.0, 3.0)),
    "wrapped": (from_gpytorch(gpytorch.likelihoods.BetaLikelihood()), (0.2, 0.9)),
}
RULES = ("variational", "laplace", "paper")
# How far sites that both end at their tolerance may lie apart, in standard deviations and shares of the precision.
APART = {torch.float64: 1e-5, torch.float32: 0.05}


def single_belief(mean, variance, slack, dtype):
    values = torch.tensor([mean, variance, slack], dtype=dtype)
    return DenseBelief(values[:1], values[1:2].unsqueeze(-1), values[2:] if slack else None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(
    ("rule", "dtype"), [("variational", torch.float32), *((rule, torch.float64) for rule in RULES)]
)
@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize(
    ("mean", "variance", "slack"),
    [pytest.param(0.3, 0.8, 0.0, marks=pytest.mark.thorough), (-2.0, 6.0, 0.4), (1.0, 1e-6, 0.1)],
)
def test_the_site_of_one_equals_that_of_the_vectorized_iteration(name, rule, dtype, mean, variance, slack):
    likelihood, outcomes = LIKELIHOODS[name]
    # With several fixed points, which of them is found may depend on rounding: the one of double precision counts.
    reference_dtype = dtype if likelihood.is_log_concave else torch.float64
    for outcome in outcomes:
        one, many = (
            find_sites(
                single_belief(mean, variance, slack, each),
                likelihood,
                torch.full(shape, outcome, dtype=each),
                SiteRule(rule),
            )[0]
            # More than are solved one after the other.
            for each, shape in ((dtype, (1,)), (reference_dtype, (9, 1)))
        )
        assert one.targets.shape == one.variance.shape == (1,)
        assert one.targets.dtype == dtype
        moments = [moments_after(mean, variance, sites) for sites in (one, many)]
        assert abs(moments[0][0] - moments[1][0]) < APART[dtype] * math.sqrt(moments[1][1])
        assert moments[0][1] == pytest.approx(moments[1][1], rel=APART[dtype])


HOSTILE = {
    "logit": (Bernoulli(), (0.0, 1.0)),
    "binomial of 100": (Binomial(100.0), (0.0, 100.0)),
    "binomial of 10 000": (Binomial(1e4), (30.0, 9999.0)),
    "poisson": (Poisson(), (0.0, 1e5)),
    "negative binomial": (NegativeBinomial(0.1), (0.0, 200.0)),
    "preference": (Preference(0.2), (0.0, 1.0)),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("rule", ["variational", "laplace"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_log_concave_site_is_found_from_any_belief_and_is_the_fixed_point_of_the_iteration(name, rule):
    """Wide and distant beliefs, where the iteration takes hundreds of steps or gives up."""
    likelihood, outcomes = HOSTILE[name]
    tight = SiteRule(rule, tolerance=1e-10)
    points = [(y, m, v) for y in outcomes for m in (-8.0, 5.0) for v in (1e-6, 1.0, 50.0)]
    found = [
        find_single_site(likelihood, y, tight, mean=m, variance=v, slack=0.1, dtype=torch.float64) for y, m, v in points
    ]
    assert all(each.is_converged for each in found)
    y, mean, variance = (each.unsqueeze(-1) for each in torch.tensor(points, dtype=torch.float64).T)
    slack = torch.full_like(mean, 0.1)
    many, info = find_sites(DenseBelief(mean, variance.unsqueeze(-1), slack), likelihood, y, tight)
    agree = 0
    for i, (_, m, v) in enumerate(points):
        if not info.is_converged[i]:
            continue
        agree += 1
        one = found[i]
        after, width = moments_after(m, v, Sites(many.targets[i], many.variance[i]))
        assert abs(m + one.shift - after) <= 1e-8 * math.sqrt(width)
        assert abs(v / (1.0 + one.precision * v) - width) <= 1e-8 * width
    assert agree >= len(points) / 3


def moments_after(mean, variance, sites):
    """Mean and variance of a latent value after the first of some sites, by Kalman's formula."""
    target, noise = sites.targets.flatten()[0].item(), sites.variance.flatten()[0].item()
    gain = variance / (variance + noise)
    return mean + gain * (target - mean), (1.0 - gain) * variance


@pytest.mark.parametrize("rule", ["variational", "laplace"])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_objective_is_stationary_at_the_site(name, rule):
    likelihood, outcomes = LIKELIHOODS[name]
    numbers = {"mean": 0.4, "variance": 0.7, "slack": 0.2}
    for y in outcomes:
        site = find_single_site(likelihood, y, SiteRule(rule, tolerance=1e-10), **numbers, dtype=torch.float64)
        problem = _ScalarProblem(**numbers, likelihood=likelihood, y=y, rule=rule)
        step = 1e-3 * (1.0 / 0.7 + site.precision)

        def objective(pull, precision, problem=problem):
            return problem.objective(problem.evaluate(pull, precision, 0.0))

        best = objective(site.pull, site.precision)
        assert math.isfinite(best)
        # A step of the pull by this moves the mean by 1e-3 prior variances: slopes vanish, and curvatures do not.
        along = [objective(site.pull + sign * step, site.precision) - best for sign in (-1.0, 1.0)]
        assert abs(along[1] - along[0]) < 0.02 * abs(sum(along)) + 1e-9 * abs(best)
        if rule == "variational" and site.precision > step:
            along = [objective(site.pull, site.precision + sign * step) - best for sign in (-1.0, 1.0)]
            assert abs(along[1] - along[0]) < 0.02 * abs(sum(along)) + 1e-9 * abs(best)


def test_a_gaussian_site_is_the_observation(rng):
    belief = single_belief(0.3, 2.0, 0.0, torch.float64)
    sites, info = find_sites(belief, Gaussian(0.3), torch.tensor([1.7], dtype=torch.float64), SiteRule())
    assert_close(sites.targets, torch.tensor([1.7], dtype=torch.float64))
    assert_close(sites.variance, torch.tensor([0.3], dtype=torch.float64))
    assert info.num_iterations == 1


def test_axes_of_a_single_observation_stay():
    belief = single_belief(0.3, 2.0, 0.0, torch.float64)
    y = torch.ones(1, 1, 1, dtype=torch.float64)
    sites, info = find_sites(belief, Bernoulli(), y, SiteRule())
    assert sites.targets.shape == (1, 1, 1)
    assert info.residual.shape == info.is_converged.shape == (1, 1)


@pytest.mark.parametrize("rule", RULES)
def test_a_batch_of_single_observations_equals_a_loop(rule):
    values = torch.tensor([[0.3, -1.0, 0.5], [0.8, 2.0, 0.1], [0.1, 0.0, 0.4]], dtype=torch.float64).unsqueeze(-1)
    mean, variance, slack = values
    y = torch.tensor([[[0.0], [3.0], [1.0]], [[2.0], [0.0], [5.0]]], dtype=torch.float64)
    sites, info = find_sites(DenseBelief(mean, variance.unsqueeze(-1), slack), Poisson(), y, SiteRule(rule))
    for i, j in ((0, 0), (0, 2), (1, 1), (1, 2)):
        belief = DenseBelief(mean[j], variance[j].unsqueeze(-1), slack[j])
        alone, its = find_sites(belief, Poisson(), y[i, j], SiteRule(rule))
        assert torch.equal(sites.targets[i, j], alone.targets)
        assert torch.equal(sites.variance[i, j], alone.variance)
        assert torch.equal(info.residual[i, j], its.residual)


def test_a_factored_belief_of_one_value_gives_the_same_site():
    root = torch.tensor([[0.5], [1.0]], dtype=torch.float64)
    mean, y = torch.tensor([0.2], dtype=torch.float64), torch.tensor([3.0], dtype=torch.float64)
    dense, _ = find_sites(DenseBelief(mean, root.mT @ root), Poisson(), y, SiteRule())
    factored, _ = find_sites(FactoredBelief(mean, root), Poisson(), y, SiteRule())
    assert_close(dense.targets, factored.targets)
    assert_close(dense.variance, factored.variance)


def test_a_site_that_does_not_converge_warns_and_a_worthless_one_is_refused():
    belief = single_belief(0.0, 4.0, 0.0, torch.float64)
    y = torch.tensor([30.0], dtype=torch.float64)
    with pytest.warns(StreamGPWarning, match="sites of 1 of 1 batches did not converge in 4 steps"):
        find_sites(belief, Poisson(), y, SiteRule(max_iterations=4, tolerance=1e-13))
    with pytest.raises(ConvergenceError, match="did not converge in 1 steps"):
        find_sites(belief, Poisson(), 1e6 * y, SiteRule(max_iterations=1))


def test_a_very_wide_belief_still_converges():
    belief = single_belief(0.0, 1e4, 0.0, torch.float64)
    sites, info = find_sites(belief, Poisson(), torch.tensor([50.0], dtype=torch.float64), SiteRule())
    assert bool(info.is_converged.all())
    assert float(sites.targets) == pytest.approx(math.log(50.0), **within(judgement(absolute=0.1)))


@pytest.mark.filterwarnings("ignore:The variational sites")
@pytest.mark.parametrize("amplitude", [1e133, 1e300])
@pytest.mark.parametrize("name", ["gamma", "poisson", "negative_binomial", "student_t", "bernoulli"])
@pytest.mark.parametrize("rule", ["variational", "laplace"])
def test_a_belief_near_the_end_of_all_numbers_is_refused_or_finite(amplitude, name, rule):
    variance = torch.tensor(amplitude, dtype=torch.float64)
    kernel = ScaleKernel(RBFKernel()).double().initialize(outputscale=variance)
    gp = sg.SparseGP.from_prior(kernel, torch.zeros(1, 1, dtype=torch.float64))
    y = torch.ones(1, dtype=torch.float64)
    try:
        absorbed, _ = gp.absorb(gp.inducing_points, y, likelihood=name, sites=rule)
    except (ConvergenceError, NumericalError):
        pass
    else:
        assert torch.isfinite(absorbed.predict(gp.inducing_points).mean).all()
