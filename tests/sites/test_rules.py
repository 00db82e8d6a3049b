"""Sites: laws, and dense references that share no code with them."""

import functools
import itertools
import math
import warnings

import gpytorch
import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES, assert_same_prediction
from tests.support.problems import random_observations, random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ConvergenceError, DTypeError, OptionError, ShapeError, StreamGPWarning, SupportError
from streamgp.likelihoods import (
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Poisson,
    Preference,
    StudentT,
    Volatility,
)
from streamgp.sites import DenseBelief, FactoredBelief, SiteRule, find_sites
from streamgp.testing.tolerances import approximation, rounding, tolerance

LIKELIHOODS = {
    "bernoulli": (Bernoulli(), lambda f: (f > 0).to(f.dtype)),
    "probit": (Bernoulli("probit"), lambda f: (f > 0).to(f.dtype)),
    "binomial": (Binomial(10), lambda f: (10 * torch.sigmoid(f)).round()),
    "poisson": (Poisson(2.0), lambda f: (2 * f.exp()).round()),
    "negative binomial": (NegativeBinomial(3.0), lambda f: f.exp().round()),
}
EXACT = SiteRule("variational", tolerance=1e-12)


def random_belief(rng, k=4, *, batch_shape=(), dtype=torch.float64):
    root = torch.randn(*batch_shape, k, k, generator=rng, dtype=torch.float64)
    mean = torch.randn(*batch_shape, k, generator=rng, dtype=torch.float64)
    return DenseBelief(mean.to(dtype), (root @ root.mT / k).to(dtype))


def posterior(belief, sites):
    """The Gaussian belief given Gaussian sites, by dense algebra."""
    C, noise = belief.covariance, torch.diag_embed(sites.variance)
    gain = torch.linalg.solve(C + noise, C).mT
    return belief.mean + (gain @ (sites.targets - belief.mean).unsqueeze(-1)).squeeze(-1), C - gain @ C


@functools.cache
def quadrature(num_nodes):
    """Nodes and weights of a standard normal variable, by NumPy."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    return torch.from_numpy(nodes), torch.from_numpy(weights / np.sqrt(2 * np.pi))


def negative_bound(parameters, belief, log_density, nodes=100):
    """The variational bound of a dense Gaussian, by NumPy and its own quadrature."""
    k = belief.mean.shape[-1]
    mean, L = parameters[:k], torch.zeros(k, k, dtype=torch.float64)
    L[tuple(torch.tril_indices(k, k))] = parameters[k:]
    S = L @ L.T
    x, w = quadrature(nodes)
    f = mean.unsqueeze(-1) + S.diagonal().sqrt().unsqueeze(-1) * x
    expected = (log_density(f) * w).sum()
    e = mean - belief.mean
    P = belief.covariance.inverse()
    divergence = 0.5 * ((P * S).sum() + e @ P @ e - k + belief.covariance.logdet() - S.logdet())
    return divergence - expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name == "probit" else pytest.param(name, marks=pytest.mark.thorough) for name in LIKELIHOODS]
)
def test_variational_sites_reach_the_optimum_of_the_bound(rng, name):
    likelihood, outcome = LIKELIHOODS[name]
    belief = random_belief(rng)
    y = outcome(belief.mean + 0.7)
    sites, info = find_sites(belief, likelihood, y, EXACT)
    mean, covariance = posterior(belief, sites)

    def objective(parameters):
        p = torch.from_numpy(parameters).requires_grad_(True)
        value = negative_bound(p, belief, lambda f: likelihood.log_density(f, y.unsqueeze(-1)))
        value.backward()
        return value.item(), p.grad.numpy()

    root = torch.linalg.cholesky(covariance)
    ours = torch.cat([mean, root[tuple(torch.tril_indices(4, 4))]]).numpy()
    start = np.concatenate(
        [belief.mean.numpy(), torch.linalg.cholesky(belief.covariance)[tuple(torch.tril_indices(4, 4))]]
    )
    best = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-9}
    )
    assert info.is_converged.all()
    # Quadrature with 32 nodes on one side and 100 on the other is all that may differ.
    assert objective(ours)[0] <= best.fun + 1e-6
    assert_close(torch.from_numpy(best.x[:4]), mean, **approximation(1e-3, "iteration"))


@pytest.mark.parametrize("rule", ["laplace", "variational"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_the_gaussian_likelihood_reproduces_exact_conditioning(rng, batch_shape, dtype, rule):
    gp = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype).gp
    new = random_observations(rng, num_observations=4, batch_shape=batch_shape, dtype=dtype)
    W = torch.rand(*batch_shape, 3, 2, generator=rng, dtype=torch.float64).to(dtype)
    exact = gp.condition(new.inputs, new.targets, noise_variance=0.2)
    through_sites = gp.condition(new.inputs, new.targets, likelihood=Gaussian(0.2), sites=rule)
    assert_same_prediction(through_sites, exact, W, **tolerance(dtype))
    absorbed, _ = gp.absorb(new.inputs, new.targets, noise_variance=0.2, inducing="keep")
    through_sites, _ = gp.absorb(new.inputs, new.targets, likelihood=Gaussian(0.2), sites=rule, inducing="keep")
    assert_same_prediction(through_sites, absorbed, W, **tolerance(dtype))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_laplace_sites_leave_their_mode_fixed(rng, name):
    likelihood, outcome = LIKELIHOODS[name]
    belief = random_belief(rng)
    y = outcome(belief.mean + 0.7)
    sites, _ = find_sites(belief, likelihood, y, SiteRule("laplace", tolerance=1e-12))
    mode, _ = posterior(belief, sites)
    gradient, curvature = likelihood.derivatives(mode, y)
    assert_close(
        gradient, torch.linalg.solve(belief.covariance, mode - belief.mean), **approximation(1e-6, "iteration")
    )
    assert_close(1 / sites.variance, -curvature, **approximation(1e-6, "iteration"))


def test_the_paper_conditions_on_the_mode_under_the_prior(rng):
    gp = random_sparse_gp(rng).gp
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    y = torch.tensor([0.0, 2.0, 5.0, 1.0], dtype=torch.float64)
    rule = SiteRule("paper", tolerance=1e-12)
    conditioned = gp.condition(X, y, likelihood=Poisson(), sites=rule)
    prior = DenseBelief(gp.mean(X), gp.kernel(X).to_dense())
    sites, _ = find_sites(prior, Poisson(), y, SiteRule("laplace", tolerance=1e-12))
    mode, _ = posterior(prior, sites)
    expected = gp.condition(X, mode, noise_variance=(-mode).exp())
    assert_same_prediction(conditioned, expected, X, **approximation(1e-7, "iteration"))
    assert_close(conditioned.site_info.sites.targets, mode, **approximation(1e-7, "iteration"))


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["laplace", "variational"])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_gradients_are_those_of_the_fixed_point(rng, name, rule):
    likelihood, outcome = LIKELIHOODS[name]
    gp = random_sparse_gp(rng).gp
    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    W = torch.rand(2, 2, generator=rng, dtype=torch.float64)
    y = outcome(torch.tensor([0.5, 1.0, -0.5], dtype=torch.float64))

    def moments(X, W):
        conditioned = gp.condition(X, y, likelihood=likelihood, sites=SiteRule(rule, tolerance=1e-13))
        prediction = conditioned.predict(W)
        return prediction.mean, prediction.variance

    assert torch.autograd.gradcheck(moments, [X.requires_grad_(True), W.requires_grad_(True)], fast_mode=True)


def test_gradients_reach_the_parameters_of_the_likelihood(rng):
    gp = random_sparse_gp(rng).gp
    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    y = torch.tensor([0.0, 3.0, 1.0], dtype=torch.float64)

    def mean(log_dispersion):
        likelihood = NegativeBinomial(2.0).with_learnable({"dispersion": log_dispersion})
        return gp.condition(X, y, likelihood=likelihood, sites=SiteRule(tolerance=1e-13)).predict(X).mean

    assert torch.autograd.gradcheck(mean, [torch.tensor(0.7, dtype=torch.float64, requires_grad=True)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@pytest.mark.parametrize("rule", ["paper", "laplace", "variational"])
@pytest.mark.parametrize("method", ["condition", "absorb"])
def test_a_batched_call_equals_a_loop(rng, method, rule, batch_shape, dtype):
    problem = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype)
    new = random_observations(rng, num_observations=4, batch_shape=batch_shape, dtype=dtype)
    y = new.targets.abs().round()
    W = torch.rand(*batch_shape, 3, 2, generator=rng, dtype=torch.float64).to(dtype)

    def update(gp, X, y):
        updated = getattr(gp, method)(X, y, likelihood=Poisson(), sites=rule)
        return updated[0] if method == "absorb" else updated

    batched = update(problem.gp, new.inputs, y).predict(W)
    for index in itertools.product(*map(range, batch_shape)):
        alone = update(problem.member(index).gp, new.inputs[index], y[index]).predict(W[index])
        assert_close(batched.mean[index], alone.mean, **tolerance(dtype))
        assert_close(batched.variance[index], alone.variance, **tolerance(dtype))


def test_fantasies_of_any_likelihood_equal_a_loop(rng):
    gp = random_sparse_gp(rng).gp
    X = torch.rand(2, 3, 2, generator=rng, dtype=torch.float64)
    y = torch.poisson(torch.full((5, 2, 3), 2.0, dtype=torch.float64), generator=rng)
    fantasies = gp.condition(X, y, likelihood=Poisson()).predict(X)
    for i, j in itertools.product(range(5), range(2)):
        alone = gp.condition(X[j], y[i, j], likelihood=Poisson()).predict(X[j])
        assert_close(fantasies.mean[i, j], alone.mean, **approximation(1e-6, "iteration"))
        assert_close(fantasies.variance[i, j], alone.variance, **approximation(1e-6, "iteration"))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_absorbing_everything_reaches_the_optimum_of_the_sparse_bound(rng, name):
    likelihood, outcome = LIKELIHOODS[name]
    problem = random_sparse_gp(rng, num_inducing=5)
    prior = sg.SparseGP.from_prior(problem.gp.kernel, problem.inducing_points, mean=problem.gp.mean)
    X = torch.rand(12, 2, generator=rng, dtype=torch.float64)
    y = outcome(torch.randn(12, generator=rng, dtype=torch.float64))
    gp, _ = prior.absorb(X, y, likelihood=likelihood, sites=EXACT, inducing="keep")
    mean, root = (
        t.clone().requires_grad_(True) for t in (gp.whitened_mean, torch.linalg.cholesky(gp.whitened_covariance))
    )
    phi, slack = prior.process.features(X), prior.predict(X).variance * 0

    def bound(mean, root):
        S = root.tril() @ root.tril().T
        m = prior.predict(X).mean + phi.T @ mean
        v = prior.process.prior.variance(X) - phi.square().sum(0) + (phi * (S @ phi)).sum(0) + slack
        divergence = 0.5 * (S.trace() + mean @ mean - 5 - S.logdet())
        return likelihood.expected_log_density(m, v, y).sum() - divergence

    # At the optimum the bound is stationary in q(u).
    gradients = torch.autograd.grad(bound(mean, root), [mean, root])
    for gradient in gradients:
        assert gradient.abs().max() < 1e-6


def test_a_dense_and_a_factored_belief_update_alike(rng):
    W = torch.randn(2, 5, 4, generator=rng, dtype=torch.float64)
    mean = torch.randn(2, 4, generator=rng, dtype=torch.float64)
    pull, precision = torch.randn(2, 4, generator=rng).double(), torch.rand(2, 4, generator=rng).double()
    dense, factored = DenseBelief(mean, W.mT @ W), FactoredBelief(mean, W)
    for one, other in zip(dense.update(pull, precision), factored.update(pull, precision), strict=True):
        assert_close(one, other, **tolerance(torch.float64))
    assert_close(dense.variance(), factored.variance())
    C = (W.mT @ W)[0]
    updated = (C.inverse() + precision[0].diag()).inverse()
    assert_close(dense.update(pull, precision).variance[0], updated.diagonal(), **tolerance(torch.float64))
    assert_close(dense.update(pull, precision).shift[0], updated @ pull[0], **tolerance(torch.float64))


def test_an_empty_batch_is_the_identity(rng):
    gp = random_sparse_gp(rng).gp
    W = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    nothing = torch.zeros(0, 2, dtype=torch.float64), torch.zeros(0, dtype=torch.float64)
    assert_same_prediction(gp.condition(*nothing, likelihood=Poisson()), gp, W, **rounding(W.dtype))
    assert_same_prediction(gp.absorb(*nothing, likelihood=Poisson())[0], gp, W, **rounding(W.dtype))


def test_an_iteration_that_is_cut_short_says_so(rng):
    gp = random_sparse_gp(rng).gp
    X, y = torch.rand(3, 2, generator=rng, dtype=torch.float64), torch.full((3,), 50.0, dtype=torch.float64)
    needed = gp.condition(X, y, likelihood=Poisson()).site_info.num_iterations
    rule = SiteRule(max_iterations=needed - 1)
    with pytest.warns(StreamGPWarning, match="variational sites of 1 of 1 batches did not converge in"):
        conditioned = gp.condition(X, y, likelihood=Poisson(), sites=rule)
    assert not conditioned.site_info.is_converged
    assert conditioned.site_info.num_iterations == needed - 1
    with pytest.raises(ConvergenceError, match=r"did not converge in 2 steps.*more inducing points"):
        gp.condition(X, y, likelihood=Poisson(), sites=SiteRule(max_iterations=2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rule", ["laplace", "variational"])
@pytest.mark.parametrize("method", ["condition", "absorb"])
def test_extreme_data_stays_finite(rng, method, rule, dtype):
    cases = {
        "large counts": (Poisson(), torch.full((6,), 1e5)),
        "all ones": (Bernoulli(), torch.ones(6)),
        "totals of zero": (Binomial(torch.zeros(6)), torch.zeros(6)),
        "outliers": (StudentT(4.0, 0.1), torch.tensor([0.0, 5.0, -5.0, 0.1, 0.0, 5.0])),
        "still returns": (Volatility(), torch.zeros(6)),
        "wild returns": (Volatility(), torch.full((6,), 30.0)),
    }
    for likelihood, y in cases.values():
        gp = random_sparse_gp(rng, dtype=dtype).gp
        X = torch.rand(6, 2, generator=rng, dtype=torch.float64).to(dtype)
        for _ in range(2):
            updated = getattr(gp, method)(X, y.to(dtype), likelihood=likelihood, sites=rule)
            gp = updated[0] if method == "absorb" else updated
            prediction = gp.predict(X)
            assert torch.isfinite(prediction.mean).all()
            assert torch.isfinite(prediction.variance).all()


def test_negative_curvature_is_counted(rng):
    gp = random_sparse_gp(rng).gp
    X = torch.rand(2, 2, generator=rng, dtype=torch.float64)
    y = torch.tensor([0.0, 50.0], dtype=torch.float64)
    info = gp.condition(X, y, likelihood=StudentT(3.0, 0.1), sites="laplace").site_info
    assert info.num_negative >= 1
    assert info.is_converged.all()


def pairs_of(rng, n, dtype=torch.float64):
    return torch.rand(n, 2, 2, generator=rng, dtype=torch.float64).to(dtype)


def test_comparisons_equal_a_dense_belief_about_their_differences(rng):
    gp = random_sparse_gp(rng).gp
    X, y = pairs_of(rng, 4), torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    conditioned = gp.condition(X, y, likelihood=Preference(0.3), sites=EXACT)
    flat = gp.predict(X.reshape(8, 2))
    H = torch.kron(torch.eye(4), torch.tensor([[1.0, -1.0]])).double()
    belief = DenseBelief(H @ flat.mean, H @ flat.covariance @ H.T)
    sites, _ = find_sites(belief, Preference(0.3), y, EXACT)
    W = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    joint = gp.predict(torch.cat([X.reshape(8, 2), W]))
    cross = joint.covariance[8:, :8] @ H.T
    A = belief.covariance + sites.variance.diag()
    gain, condition = cross @ torch.linalg.inv(A), float(torch.linalg.cond(A))
    limits = approximation(EXACT.tolerance * condition + rounding(A.dtype, condition=condition)["rtol"], "iteration")
    assert_close(conditioned.predict(W).mean, joint.mean[8:] + gain @ (sites.targets - belief.mean), **limits)
    assert_close(conditioned.predict(W).covariance, joint.covariance[8:, 8:] - gain @ cross.T, **limits)


@pytest.mark.parametrize("method", ["condition", "absorb"])
def test_comparisons_across_batches_order_what_they_compare(rng, method):
    kernel = random_sparse_gp(rng, num_dims=1).gp.kernel
    x = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    gp = sg.SparseGP.from_prior(kernel, x)
    # Each batch compares one new input with the one before: larger is better.
    for i in range(5):
        pair = torch.stack([x[i + 1], x[i]]).unsqueeze(0).repeat(4, 1, 1)
        updated = getattr(gp, method)(pair, torch.ones(4, dtype=torch.float64), likelihood=Preference(0.1))
        gp = updated[0] if method == "absorb" else updated
    assert (gp.predict(x).mean.diff() > 0).all()


def test_conditioning_on_values_after_comparisons_mixes_both(rng):
    gp = random_sparse_gp(rng).gp
    pairs, y = pairs_of(rng, 3), torch.ones(3, dtype=torch.float64)
    new = random_observations(rng, num_observations=2)
    W = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    first = gp.condition(pairs, y, likelihood=Preference(0.3))
    sites = first.site_info.sites
    values_after = first.condition(new.inputs, new.targets, noise_variance=0.1).predict(W)
    # The same Gaussian facts in one dense step.
    flat = torch.cat([pairs.reshape(6, 2), new.inputs, W])
    joint = gp.predict(flat)
    H = torch.block_diag(torch.kron(torch.eye(3), torch.tensor([[1.0, -1.0]])), torch.eye(2)).double()
    A = H @ joint.covariance[:8, :8] @ H.T + torch.cat([sites.variance, torch.full((2,), 0.1)]).diag()
    gain = joint.covariance[8:, :8] @ H.T @ A.inverse()
    residual = torch.cat([sites.targets, new.targets]) - H @ joint.mean[:8]
    # The usual tolerance of sites.
    assert_close(values_after.mean, joint.mean[8:] + gain @ residual, **approximation(1e-7, "iteration"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_contradicting_comparisons_cancel(rng, dtype):
    gp = sg.SparseGP.from_prior(random_sparse_gp(rng, dtype=dtype).gp.kernel, torch.rand(4, 2, generator=rng).to(dtype))
    pair = pairs_of(rng, 1, dtype)
    X = torch.cat([pair, pair.flip(-2)]).repeat(50, 1, 1)
    y = torch.ones(100, dtype=dtype)
    prediction = gp.condition(X, y, likelihood=Preference(0.1)).predict(pair[0])
    assert torch.isfinite(prediction.mean).all()
    assert (prediction.mean[0] - prediction.mean[1]).abs() < 1e-2


TWO, ONES = torch.rand(3, 2, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
BAD = {
    "half a count": ({"likelihood": Poisson()}, TWO, 0.5 * ONES, SupportError, "Poisson targets"),
    "wrong class": ({"likelihood": Bernoulli()}, TWO, -ONES, SupportError, "must be 0 or 1"),
    "both": ({"likelihood": Poisson(), "noise_variance": 1.0}, TWO, ONES, OptionError, "Pass one"),
    "unknown rule": ({"likelihood": Poisson(), "sites": "ep"}, TWO, ONES, OptionError, "sites must be one of"),
    "no pairs": ({"likelihood": Preference()}, TWO, ONES, ShapeError, r"X must have shape \(\.\.\., n, 2, 2\)"),
    "mixed dtypes": (
        {"likelihood": Poisson()},
        TWO,
        ONES.float(),
        DTypeError,
        "y is float32, but the model is float64",
    ),
}


@pytest.mark.parametrize("method", ["condition", "absorb"])
@pytest.mark.parametrize("case", BAD)
def test_bad_input_raises_our_error_with_a_sentence(rng, method, case):
    options, X, y, error, sentence = BAD[case]
    with pytest.raises(error, match=sentence):
        getattr(random_sparse_gp(rng).gp, method)(X, y, **options)


def test_whole_numbers_may_come_as_integers(rng):
    gp = random_sparse_gp(rng).gp
    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    counts = torch.tensor([1, 0, 4])
    first = gp.condition(X, counts, likelihood=Poisson())
    assert_same_prediction(first, gp.condition(X, counts.double(), likelihood=Poisson()), X, rtol=0, atol=0)


def test_converged_sites_raise_no_warning(rng):
    gp = random_sparse_gp(rng).gp
    X = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for likelihood, outcome in LIKELIHOODS.values():
            y = outcome(torch.randn(5, generator=rng, dtype=torch.float64))
            assert gp.condition(X, y, likelihood=likelihood).site_info.num_iterations < 30


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_prior_so_wide_that_expectations_are_astronomical_still_converges(rng, dtype):
    gp, X, y = wide_problem(rng, dtype, outputscale=100.0)  # the first expected rate is exp(50)
    conditioned = gp.condition(X, y, likelihood=Poisson())
    assert conditioned.site_info.is_converged.all()
    assert ((conditioned.predict(X).mean - (y + 0.5).log()).abs() < 2.0).all()


@pytest.mark.filterwarnings("ignore::streamgp.errors.StreamGPWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_prior_so_wide_that_expectations_overflow_gives_finite_sites_and_an_honest_flag(rng, dtype):
    gp, X, y = wide_problem(rng, dtype, outputscale=1e4)  # the first expected rate is exp(5000)
    conditioned = gp.condition(X, y, likelihood=Poisson())
    assert torch.isfinite(conditioned.predict(X).mean).all()
    tolerance = 1e-7 if dtype == torch.float64 else 5e-3
    assert bool(conditioned.site_info.is_converged) == (float(conditioned.site_info.residual) <= tolerance)
    assert conditioned.site_info.residual < 0.1


def wide_problem(rng, dtype, *, outputscale):
    kernel = random_sparse_gp(rng, dtype=dtype).gp.kernel
    kernel.outputscale = outputscale
    X = torch.rand(8, 2, generator=rng, dtype=torch.float64).to(dtype)
    return sg.SparseGP.from_prior(kernel, X), X, torch.tensor([0, 1, 2, 3, 5, 8, 13, 21]).to(dtype)


@pytest.mark.parametrize("method", ["condition", "absorb"])
@pytest.mark.parametrize("name", ["poisson", "binomial"])
@pytest.mark.parametrize("size", [1e6, 1e8])
def test_sites_of_millions_of_counts_are_those_of_double_precision(rng, size, name, method):
    X = torch.rand(24, 1, generator=rng, dtype=torch.float64)
    f = torch.sin(6.0 * X[:, 0])
    level = math.log(size) if name == "poisson" else 0.0
    likelihood, y = {
        "poisson": (Poisson(), (level + f).exp().round()),
        "binomial": (Binomial(int(4 * size)), (4 * size * f.sigmoid()).round()),
    }[name]
    single, double = (precise_sites(method, X, y, likelihood, level=level, dtype=dtype)[0] for dtype in DTYPES)
    assert_close(single.targets.double(), double.targets, **tolerance(torch.float32, scale=abs(level) + 1.0))
    share = single.variance.double() / double.variance
    assert_close(share, torch.ones_like(share), **approximation(1e-2, "iteration"))


@pytest.mark.parametrize("method", ["condition", "absorb"])
@pytest.mark.parametrize("scale", [1e-3, 1e-4])
def test_noise_with_wide_tails_may_be_as_small_as_rounding(rng, scale, method):
    X = torch.rand(24, 1, generator=rng, dtype=torch.float64)
    y = torch.sin(6.0 * X[:, 0])
    for dtype in DTYPES:
        _, mean = precise_sites(method, X, y, StudentT(4.0, scale), level=0.0, dtype=dtype)
        # Single precision has a jitter of 1e-5 in the variance.
        assert_close(mean.double(), y, **approximation(math.sqrt(1e-5), "jitter"))


def precise_sites(method, X, y, likelihood, *, level, dtype):
    """Sites of a smooth function that is observed almost exactly, and what is expected of it afterwards."""
    mean, kernel = gpytorch.means.ConstantMean().to(dtype), gpytorch.kernels.RBFKernel().to(dtype)
    mean.constant.data.fill_(level)
    kernel.lengthscale = 0.3
    gp = sg.SparseGP.from_prior(kernel, X[::3].to(dtype), mean=mean)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = getattr(gp, method)(X.to(dtype), y.to(dtype), likelihood=likelihood)
    after, info = (result[0], result[1].site_info) if method == "absorb" else (result, result.site_info)
    assert info.is_converged.all()
    return info.sites, after.predict(X.to(dtype)).mean


def test_gradients_reach_counts_of_a_hundred_million_in_single_precision(rng):
    X = torch.rand(12, 1, generator=rng, dtype=torch.float64).float()
    y = (18.0 + torch.sin(6.0 * X[:, 0])).exp().requires_grad_(True)
    mean = gpytorch.means.ConstantMean()
    mean.constant.data.fill_(18.0)
    gp = sg.SparseGP.from_prior(gpytorch.kernels.RBFKernel(), X[::3], mean=mean)
    belief = gp.predict(X, covariance=True)
    sites, _ = find_sites(DenseBelief(belief.mean.detach(), belief.covariance.detach()), Poisson(), y, SiteRule())
    (slope,) = torch.autograd.grad(sites.targets.sum(), y)
    # Sites of so many counts are at their logarithms.
    share = slope * y.detach()
    assert_close(share, torch.ones_like(share), **approximation(1e-2, "iteration"))
