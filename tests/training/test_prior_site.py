import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean, LinearMean
from tests.support.conditioning_laws import DTYPES
from tests.support.problems import random_observations, random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ArgumentTypeError, DTypeError, NumericalError, ShapeError, UnsupportedError
from streamgp.gp import SparseProcess
from streamgp.likelihoods import Bernoulli, Gaussian, Poisson, Preference, StudentT
from streamgp.testing.tolerances import approximation, judgement, regression_condition, rounding, tolerance, within
from streamgp.training import Minibatches
from streamgp.training.collapsed import collapsed_bound
from streamgp.training.features import Observed, observed_features
from streamgp.training.full_batch import trace_slack
from streamgp.training.parameters import Hyperparameters, hyperparameter_space
from streamgp.training.prior_site import read_prior_site
from streamgp.training.priors import target_variance
from streamgp.training.result import optimal_process
from streamgp.training.sites_bound import optimal_sites, sites_bound


def changed_setting(rng, likelihood, *, num_inducing=5, lengthscale=0.6):
    kernel, mean = ScaleKernel(MaternKernel(2.5, ard_num_dims=2)).double(), LinearMean(2).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = 1.3, lengthscale
    with torch.no_grad():
        mean.weights.copy_(torch.tensor([[0.3], [-0.2]]))
        mean.bias.fill_(0.1)
    Z = torch.rand(num_inducing, 2, generator=rng, dtype=torch.float64)
    return Hyperparameters(kernel, mean, likelihood, Z, {})


def carried_data(rng, targets, *, width=0.9, num_inducing=4):
    gp = random_sparse_gp(rng, num_inducing=num_inducing, width=width).gp
    X = torch.rand(len(targets), 2, generator=rng, dtype=torch.float64)
    y = torch.as_tensor(targets, dtype=torch.float64)
    return gp, Observed(X, y, carried=read_prior_site(gp, like=X))


def array(tensor):
    return tensor.detach().numpy()


def evaluated(kernel, mean):
    return (lambda A, B: array(kernel(A, B).to_dense())), (lambda A: array(mean(A)))


def unwhitened_site(gp):
    """The site of a belief on the values at its inducing points, by plain inverses."""
    k, _ = evaluated(gp.kernel, gp.mean)
    Z = gp.inducing_points
    K = k(Z, Z) + gp.process.jitter * np.eye(len(Z))
    L = np.linalg.cholesky(K)
    S_inverse = np.linalg.inv(L @ array(gp.whitened_covariance) @ L.T)
    return S_inverse - np.linalg.inv(K), S_inverse @ L @ array(gp.whitened_mean)


def log_normal(residual, covariance):
    return -0.5 * (residual @ np.linalg.solve(covariance, residual) + np.linalg.slogdet(2 * math.pi * covariance)[1])


REALS = [0.1, -1.0, 2.0, 0.5, 0.7, -0.2, 0.3]


@pytest.mark.parametrize("noise", [torch.tensor(0.2), torch.linspace(0.1, 0.4, 7)])
def test_the_bound_is_that_of_pseudo_data_and_new_observations_together(rng, noise):
    gp, data = carried_data(rng, REALS)
    setting, noise = changed_setting(rng, Gaussian(0.2)), noise.double()
    k, mu = evaluated(setting.kernel, setting.mean)
    Z, Z_old, X, y = setting.inducing_points, gp.inducing_points, data.inputs, array(data.targets)
    precision, pull = unwhitened_site(gp)
    noise_hat = np.linalg.inv(precision)
    y_hat = array(gp.mean(Z_old)) + noise_hat @ pull
    K = k(Z, Z) + gp.process.jitter * np.eye(len(Z))
    joint = torch.cat([Z_old, X])
    Q = k(joint, Z) @ np.linalg.solve(K, k(Z, joint))
    covariance = Q.copy()
    covariance[:4, :4] += noise_hat
    covariance[4:, 4:] += np.diag(array(noise.expand(7)))
    residual = k(joint, joint) - Q
    trace = np.trace(precision @ residual[:4, :4]) + (np.diag(residual)[4:] / array(noise.expand(7))).sum()
    # A Gaussian in the pseudo-targets is the site times this constant.
    constant = 0.5 * np.linalg.slogdet(2 * math.pi * noise_hat)[1] + 0.5 * pull @ noise_hat @ pull
    expected = log_normal(np.concatenate([y_hat, y]) - mu(joint), covariance) - 0.5 * trace + constant
    assert_close(collapsed_bound(setting, data, noise).item(), expected, **tolerance(torch.float64))


CASES = [
    (Gaussian(0.3), REALS),
    (Bernoulli(), [0, 1, 1, 0, 1, 0, 0]),
    (Poisson(), [0, 1, 0, 3, 2, 1, 5]),
    (StudentT(), [0.1, -1.0, 9.0, 0.5, 0.7, -0.2, 0.3]),
]


@pytest.mark.parametrize("width", [0.9, 1.2])
@pytest.mark.parametrize(("likelihood", "targets"), CASES)
def test_at_sites_it_is_the_expectation_of_all_factors_less_the_divergence(rng, likelihood, targets, width):
    gp, data = carried_data(rng, targets, width=width)
    setting = changed_setting(rng, likelihood)
    sites, _ = optimal_sites(setting, data)
    k, mu = evaluated(setting.kernel, setting.mean)
    Z, Z_old, X = setting.inducing_points, gp.inducing_points, data.inputs
    precision, pull = unwhitened_site(gp)
    K = k(Z, Z) + gp.process.jitter * np.eye(len(Z))
    A, B = np.linalg.solve(K, k(Z, Z_old)).T, np.linalg.solve(K, k(Z, X)).T
    shift = mu(Z_old) - array(gp.mean(Z_old))
    # The belief about u less its mean: prior, carried site and the sites of the observations.
    tau, lam = array(sites.precision), array(sites.pull)
    S = np.linalg.inv(np.linalg.inv(K) + A.T @ precision @ A + B.T @ np.diag(tau) @ B)
    m = S @ (A.T @ (pull - precision @ shift) + B.T @ (lam - tau * mu(X)))
    old_mean, old_covariance = A @ m + shift, k(Z_old, Z_old) - A @ (K - S) @ A.T
    site = pull @ old_mean - 0.5 * (old_mean @ precision @ old_mean + np.trace(precision @ old_covariance))
    mean, variance = mu(X) + B @ m, np.diag(k(X, X) - B @ (K - S) @ B.T)
    moments = torch.from_numpy(mean), torch.from_numpy(variance.copy())
    fit = likelihood.expected_log_density(*moments, data.targets).sum().item()
    log_ratio = np.linalg.slogdet(K)[1] - np.linalg.slogdet(S)[1]
    divergence = 0.5 * (np.trace(np.linalg.solve(K, S)) + m @ np.linalg.solve(K, m) - len(m) + log_ratio)
    assert_close(sites_bound(setting, data, sites).item(), fit + site - divergence, **tolerance(torch.float64))


@pytest.mark.parametrize(("likelihood", "targets"), CASES[1:3])
def test_optimal_sites_are_stationary_beside_a_carried_belief(rng, likelihood, targets):
    _, data = carried_data(rng, targets)
    setting = changed_setting(rng, likelihood)
    sites, is_converged = optimal_sites(setting, data, tolerance=1e-9)
    assert is_converged
    free = [value.clone().requires_grad_(True) for value in sites]
    for gradient in torch.autograd.grad(sites_bound(setting, data, type(sites)(*free)), free):
        assert gradient.abs().max() < 1e-6


@pytest.mark.parametrize(("likelihood", "target"), [(Bernoulli(), 1.0), (Poisson(), 3.0)])
def test_of_one_value_the_bound_is_just_below_the_integral_of_prior_site_and_likelihood(rng, likelihood, target):
    gp, data = carried_data(rng, [target], num_inducing=1, width=0.4)
    setting = changed_setting(rng, likelihood, num_inducing=1)
    x = gp.inducing_points
    setting = Hyperparameters(setting.kernel, setting.mean, likelihood, x, {})
    data = Observed(x, data.targets, carried=data.carried)
    precision, pull = (value.item() for value in unwhitened_site(gp))
    f = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
    mean, variance = setting.mean(x).item(), setting.kernel(x).to_dense().item()
    old = f - gp.mean(x).item()
    log_density = -0.5 * ((f - mean) ** 2 / variance + math.log(2 * math.pi * variance))
    log_density = log_density + pull * old - 0.5 * precision * old**2 + likelihood.log_density(f, data.targets)
    evidence = torch.logsumexp(log_density, 0) + math.log(24 / 20_000)
    sites, _ = optimal_sites(setting, data)
    bound = sites_bound(setting, data, sites)
    assert evidence - 0.05 < bound < evidence + 1e-5


def gaussian_halves(rng, *, num_old=12, num_new=8):
    old, new = (random_observations(rng, num_observations=n) for n in (num_old, num_new))
    setting = changed_setting(rng, Gaussian(0.1))
    return old, new, setting


def test_with_the_same_points_and_hyperparameters_it_adds_up_to_the_bound_of_all_observations(rng):
    old, new, setting = gaussian_halves(rng)
    Z, kernel, mean = setting.inducing_points, setting.kernel, setting.mean
    prior = sg.SparseGP.from_prior(kernel, Z, mean=mean)
    gp, _ = prior.absorb(old.inputs, old.targets, noise_variance=old.noise_variance, inducing="keep")
    carried = read_prior_site(gp, like=Z)
    second = Observed(new.inputs, new.targets, carried=carried)
    gain = collapsed_bound(setting, second, new.noise_variance) - observed_features(setting, second).log_normalizer
    first = Observed(old.inputs, old.targets)
    union = Observed(torch.cat([old.inputs, new.inputs]), torch.cat([old.targets, new.targets]))
    noise = torch.cat([old.noise_variance, new.noise_variance])
    expected = collapsed_bound(setting, union, noise) - collapsed_bound(setting, first, old.noise_variance)
    assert_close(gain, expected, **approximation(1e-6, "jitter"))


def test_with_points_at_all_inputs_it_changes_with_hyperparameters_as_the_exact_evidence_does(rng):
    old, new, setting = gaussian_halves(rng)
    prior = sg.SparseGP.from_prior(setting.kernel, old.inputs, mean=setting.mean)
    gp, _ = prior.absorb(old.inputs, old.targets, noise_variance=old.noise_variance, inducing="keep")
    X, y = torch.cat([old.inputs, new.inputs]), torch.cat([old.targets, new.targets])
    noise = torch.cat([old.noise_variance, new.noise_variance])
    data = Observed(new.inputs, new.targets, carried=read_prior_site(gp, like=X))
    bounds, evidences = [], []
    for lengthscale in (0.4, 0.6, 1.1):
        other = changed_setting(rng, Gaussian(0.1), lengthscale=lengthscale)
        other = Hyperparameters(other.kernel, ConstantMean().double(), other.likelihood, X, {})
        bounds.append(collapsed_bound(other, data, new.noise_variance).item())
        covariance = array(other.kernel(X).to_dense()) + np.diag(array(noise))
        evidences.append(log_normal(array(y - other.mean(X)), covariance))
    assert_close(np.diff(bounds), np.diff(evidences), **approximation(1e-4, "jitter"))


def test_a_belief_without_information_changes_no_bound(rng):
    setting = changed_setting(rng, Gaussian(0.2))
    _, data = carried_data(rng, REALS)
    prior = sg.SparseGP.from_prior(setting.kernel, torch.rand(3, 2, generator=rng, dtype=torch.float64))
    plain = Observed(data.inputs, data.targets)
    informed = Observed(data.inputs, data.targets, carried=read_prior_site(prior, like=data.inputs))
    noise = torch.tensor(0.2, dtype=torch.float64)
    expected = collapsed_bound(setting, plain, noise)
    assert_close(
        collapsed_bound(setting, informed, noise),
        expected,
        **rounding(noise.dtype, condition=regression_condition(7, 0.2)),
    )


@pytest.mark.parametrize(("likelihood", "targets"), CASES)
def test_gradients_reach_all_that_is_learned(rng, likelihood, targets):
    _, data = carried_data(rng, targets, num_inducing=3)
    setting = changed_setting(rng, likelihood, num_inducing=3)
    space = hyperparameter_space(setting, learn_inducing=True)
    sites, _ = optimal_sites(setting, data)

    def bound(x):
        if isinstance(likelihood, Gaussian):
            return space.evaluate(x, lambda s: collapsed_bound(s, data, s.likelihood.noise_variance))
        return space.evaluate(x, lambda s: sites_bound(s, data, sites))

    x = space.start.clone().requires_grad_(True)
    assert torch.autograd.gradcheck(bound, [x])
    (gradient,) = torch.autograd.grad(bound(x), x)
    assert (gradient != 0).all()


def test_a_belief_that_becomes_too_wide_is_refused(rng):
    gp, data = carried_data(rng, REALS, width=1.3)
    assert data.carried.is_indefinite
    setting = changed_setting(rng, Gaussian(0.2))
    same = Hyperparameters(gp.kernel, gp.mean, Gaussian(0.2), gp.inducing_points, {})
    assert torch.isfinite(observed_features(same, data).log_normalizer)
    setting.kernel.outputscale = 100.0
    with pytest.raises(NumericalError, match="too wide under these hyperparameters"):
        observed_features(setting, data)
    with pytest.raises(NumericalError, match="too wide under these hyperparameters"):
        optimal_process(setting, data)


def test_points_that_lose_the_carried_belief_show_in_the_slack(rng):
    gp, data = carried_data(rng, REALS)
    same = Hyperparameters(gp.kernel, gp.mean, Gaussian(0.2), gp.inducing_points, {})
    far = Hyperparameters(gp.kernel, gp.mean, Gaussian(0.2), gp.inducing_points + 50.0, {})
    plain = Observed(data.inputs, data.targets)
    precision, _ = unwhitened_site(gp)
    at_most = gp.process.jitter * np.trace(precision) / 7
    assert -1e-3 < trace_slack(same, data) - trace_slack(same, plain) < at_most + 1e-3
    lost = np.trace(precision @ evaluated(gp.kernel, gp.mean)[0](gp.inducing_points, gp.inducing_points))
    assert trace_slack(far, data) == pytest.approx(
        trace_slack(far, plain) + lost / 7, **within(tolerance(torch.float64))
    )


def test_the_scale_of_targets_is_that_of_the_belief_where_new_ones_vary_less(rng):
    X = torch.linspace(0, 1, 50, dtype=torch.float64).unsqueeze(-1)
    y = 3.0 * torch.sin(12 * X.squeeze(-1))
    prior = sg.SparseGP.from_prior(ScaleKernel(MaternKernel(2.5)), X[::2])
    gp, _ = prior.absorb(X, y, noise_variance=1e-4, inducing="keep")
    unknowing, knowing = (Observed(X[:3], y[:3], carried=read_prior_site(each, like=X)) for each in (prior, gp))
    # Points where nothing was learned do not count.
    more = sg.SparseGP.from_prior(prior.kernel, torch.cat([X[::2], X[::5] + 100.0]))
    more, _ = more.absorb(X, y, noise_variance=1e-4, inducing="keep")
    wider = Observed(X[:3], y[:3], carried=read_prior_site(more, like=X))
    assert target_variance(wider, is_gaussian=True) == pytest.approx(
        target_variance(knowing, is_gaussian=True), **within(judgement(relative=1e-6))
    )
    assert target_variance(knowing, is_gaussian=True) == pytest.approx(
        y[::2].var(correction=0).item(), **within(judgement(relative=0.05))
    )
    assert target_variance(unknowing, is_gaussian=True) == pytest.approx(y[:3].var(correction=0).item())
    assert target_variance(knowing, is_gaussian=False) == 1.0


def test_a_narrow_end_of_a_stream_is_no_reason_to_warn(rng, recwarn):
    X, _, y = waves(rng, 20)
    prior = sg.SparseGP.from_prior(ScaleKernel(MaternKernel(2.5)), X)
    result = sg.fit(1e-4 * X, y, carried=prior, num_inducing=5, max_iterations=2)
    assert not result.info.warnings
    assert not recwarn.list


def waves(rng, n, *, dtype=torch.float64):
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    f = torch.sin(6 * X[:, 0]) + torch.cos(4 * X[:, 1])
    y = f + 0.2 * torch.randn(n, generator=rng, dtype=torch.float64)
    return X.to(dtype), f.to(dtype), y.to(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_result_is_the_carried_belief_with_the_observations_absorbed(rng, dtype):
    X, _, y = waves(rng, 80, dtype=dtype)
    first = sg.fit(X[:40], y[:40], num_inducing=12)
    result = sg.fit(X[40:], y[40:], carried=first.gp, start=first, num_inducing=15)
    gp, noise = result.gp, result.likelihood.noise_variance
    expected, info = first.gp.absorb(
        X[40:], y[40:], noise_variance=noise, inducing=gp.inducing_points, kernel=gp.kernel, mean=gp.mean
    )
    assert info.num_clipped == 0
    assert gp.num_inducing == 15
    assert gp.predict(X).mean.dtype == dtype
    assert_close(gp.predict(X).mean, expected.predict(X).mean, **tolerance(dtype))
    assert_close(gp.predict(X).variance, expected.predict(X).variance, **tolerance(dtype))


@pytest.mark.slow
@pytest.mark.parametrize(("likelihood", "draw"), [(Bernoulli(), torch.bernoulli), (Poisson(), torch.poisson)])
def test_other_likelihoods_are_absorbed_at_their_sites(rng, likelihood, draw):
    X, f, _ = waves(rng, 80)
    y = draw(torch.sigmoid(2 * f) if isinstance(likelihood, Bernoulli) else f.exp(), generator=rng)
    first = sg.fit(X[:40], y[:40], likelihood=likelihood, num_inducing=8, max_iterations=15)
    result = sg.fit(X[40:], y[40:], carried=first.gp, start=first, num_inducing=8)
    gp = result.gp
    expected, _ = first.gp.absorb(
        X[40:], y[40:], likelihood=likelihood, inducing=gp.inducing_points, kernel=gp.kernel, mean=gp.mean
    )
    assert_close(gp.predict(X).mean, expected.predict(X).mean, **approximation(1e-4, "iteration"))
    assert result.info.history[-1] >= result.info.history[0]
    assert result.info.history[-1] == pytest.approx(
        result.info.bound + result.info.log_prior, **within(judgement(absolute=0.2))
    )


@pytest.mark.slow
def test_comparisons_can_follow_a_belief(rng):
    X = torch.rand(60, 2, 2, generator=rng, dtype=torch.float64)
    y = (X[:, 0, 0] > X[:, 1, 0]).double()
    first = sg.fit(X[:40], y[:40], likelihood=Preference(), num_inducing=6, max_iterations=10)
    result = sg.fit(X[40:], y[40:], carried=first.gp, start=first, num_inducing=6, max_iterations=4)
    W = torch.tensor([[0.1, 0.5], [0.5, 0.5], [0.9, 0.5]], dtype=torch.float64)
    assert (result.predict(W).mean.diff() > 0).all()


@pytest.mark.slow
def test_a_belief_without_information_changes_no_fit(rng):
    X, _, y = waves(rng, 50)
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=2)).double()
    kernel.raw_outputscale.requires_grad_(False)  # so that its jitter is that of the prior throughout
    prior = sg.SparseGP.from_prior(kernel, X[:7])
    options = {"kernel": kernel, "inducing": X[:9].clone(), "max_iterations": 20}
    plain, informed = sg.fit(X, y, **options), sg.fit(X, y, carried=prior, **options)
    assert informed.info.num_evaluations == plain.info.num_evaluations
    same = rounding(X.dtype, condition=regression_condition(50, 0.04))
    assert informed.info.bound == pytest.approx(plain.info.bound, **within(same))
    assert_close(informed.predict(X).mean, plain.predict(X).mean, **same)


def smooth_stream(rng, n):
    """A draw from a GP with lengthscale 0.15 and noise variance 0.04, in the order of the inputs."""
    X = torch.rand(n, 1, generator=rng, dtype=torch.float64).sort(0).values
    kernel = MaternKernel(2.5).double()
    kernel.lengthscale = 0.15
    L = torch.linalg.cholesky(kernel(X).to_dense().detach() + 1e-9 * torch.eye(n))
    f = L @ torch.randn(n, generator=rng, dtype=torch.float64)
    return X, f + 0.2 * torch.randn(n, generator=rng, dtype=torch.float64)


def logarithms(result):
    kernel = result.gp.kernel
    return torch.stack([kernel.base_kernel.lengthscale.squeeze(), kernel.outputscale]).log()


@pytest.mark.slow
def test_hyperparameters_are_those_of_the_whole_stream_and_not_of_its_end(rng):
    X, y = smooth_stream(rng, 120)
    whole = sg.fit(X, y, num_inducing=40)
    # The belief was formed under a lengthscale that is far too short.
    kernel = deepcopy(whole.gp.kernel)
    kernel.base_kernel.lengthscale = 0.5 * kernel.base_kernel.lengthscale
    prior = sg.SparseGP.from_prior(kernel, X[:108], mean=whole.gp.mean)
    noise = whole.likelihood.noise_variance
    carried, _ = prior.absorb(X[:108], y[:108], noise_variance=noise, inducing="keep")
    both = sg.fit(X[108:], y[108:], carried=carried, num_inducing=60, tolerance=1e-6)
    alone = sg.fit(X[108:], y[108:], kernel="matern")
    # Between the two fits lies only what the end of the stream says of its own noise.
    assert (logarithms(both) - logarithms(whole)).abs().max() < 0.1
    assert (logarithms(alone) - logarithms(whole)).abs().max() > 0.5
    assert_close(both.predict(X).mean, whole.predict(X).mean, **judgement(absolute=0.1))


@pytest.mark.slow
def test_more_points_than_rows_can_be_asked_for_and_carried_ones_are_candidates(rng):
    X, _, y = waves(rng, 60)
    first = sg.fit(X[:50], y[:50], num_inducing=20)
    result = sg.fit(X[50:], y[50:], carried=first.gp, num_inducing=100, learn_inducing=False, inducing="pivoted")
    assert result.info.num_inducing == 30
    for points in (X[50:], first.gp.inducing_points):
        assert (points.unsqueeze(-2) == result.gp.inducing_points).all(-1).any(-1).all()
    centers = sg.fit(X[50:], y[50:], carried=first.gp, num_inducing=25, learn_inducing=False, max_iterations=3)
    assert centers.info.num_inducing > 20


@pytest.mark.slow
def test_their_number_grows_until_the_carried_belief_is_held_too(rng):
    X, _, y = waves(rng, 220)
    first = sg.fit(X[:200], y[:200], num_inducing=60, max_iterations=20)
    result = sg.fit(
        X[200:], y[200:], carried=first.gp, num_inducing="auto", learn_inducing=False, slack_tolerance=1.0, start=first
    )
    assert result.info.num_inducing >= 60
    assert result.info.trace_slack <= 1.0


@pytest.mark.slow
def test_the_scaling_of_a_start_holds_for_the_carried_belief(rng):
    X, f, y = waves(rng, 90)
    inputs, targets = 100 * X + 3, 50 * y - 7
    first = sg.fit(inputs[:60], targets[:60], num_inducing=15, standardize=True)
    both = sg.fit(inputs[60:], targets[60:], carried=first.gp, start=first, num_inducing=15)
    assert both.scaling is first.scaling
    error = (both.predict(inputs).mean - (50 * f - 7)).square().mean().sqrt()
    assert error < 0.15 * 50
    assert both.predict(inputs).variance.mean() < first.predict(inputs).variance.mean()


ROWS, FIVE = torch.rand(5, 2, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)
PRIOR = sg.SparseGP.from_prior(ScaleKernel(MaternKernel(2.5)), ROWS[:3])
SINGLE = sg.SparseGP.from_prior(ScaleKernel(MaternKernel(2.5)), ROWS[:3].float())
NARROW = sg.SparseGP.from_prior(ScaleKernel(MaternKernel(2.5)), ROWS[:3, :1])
BATCH = sg.SparseGP.from_prior(ScaleKernel(MaternKernel(2.5)), ROWS[:4].reshape(2, 2, 2))


def without_spread():
    process = PRIOR.process
    root = torch.zeros_like(process.whitened_root)
    return sg.SparseGP(
        SparseProcess(process.prior, process.inducing_points, process.whitened_mean, root, process.jitter)
    )


def test_what_is_no_belief_cannot_be_carried():
    with pytest.raises(ArgumentTypeError, match=r"carried must be a SparseGP.*but is a SparseProcess"):
        read_prior_site(PRIOR.process, like=ROWS)


@pytest.mark.parametrize(
    ("carried", "options", "error", "message"),
    [
        (SINGLE, {}, DTypeError, "carried is torch.float32.*but X is torch.float64"),
        (NARROW, {}, ShapeError, r"carried has inducing points of shape \(3, 1\), but X has 2 columns"),
        (BATCH, {}, UnsupportedError, r"carried has leading axes \(2,\).*Fit one for each"),
        (without_spread(), {}, NumericalError, "no spread in some direction"),
        (PRIOR, {"objective": "pll"}, UnsupportedError, "enters the bound, but objective='pll'"),
        (PRIOR, {"beta": 0.5}, UnsupportedError, "with beta=0.5 was asked for"),
        (PRIOR, {"minibatches": Minibatches()}, UnsupportedError, "needs all rows at once"),
        (PRIOR, {"standardize": True}, UnsupportedError, "standardize=True would change those of X and y"),
    ],
)
def test_what_cannot_be_carried_is_refused_with_a_sentence(carried, options, error, message):
    with pytest.raises(error, match=message):
        sg.fit(ROWS, FIVE, carried=carried, **options)
