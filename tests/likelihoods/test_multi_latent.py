"""Observations of several latent functions, conditioned on through sites of a belief that factorizes."""

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from scipy.optimize import minimize
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError
from streamgp.likelihoods import HeteroskedasticGaussian, Softmax
from streamgp.likelihoods.multi_latent import _nodes
from streamgp.sites import DenseBelief, SiteRule, find_sites
from streamgp.testing.tolerances import approximation, judgement, tolerance

LIKELIHOODS = {"softmax of 2": Softmax(2), "softmax of 3": Softmax(3), "heteroskedastic": HeteroskedasticGaussian()}


def batch_gp(num_latents, *, m=8, dtype=torch.float64):
    shape = torch.Size([num_latents])
    kernel = ScaleKernel(RBFKernel(batch_shape=shape), batch_shape=shape)
    kernel.base_kernel.lengthscale, kernel.outputscale = 0.4, 2.0
    return sg.SparseGP.from_prior(kernel, torch.linspace(0, 1, m, dtype=dtype).unsqueeze(-1))


def rows(likelihood, rng, n, dtype=torch.float64):
    X = torch.rand(n, 1, generator=rng, dtype=torch.float64).to(dtype)
    f = torch.randn(likelihood.num_latents, n, generator=rng, dtype=torch.float64).to(dtype)
    return X, likelihood.sample(f, generator=rng)


@pytest.mark.parametrize("num_latents", [2, 3, 10])
def test_nodes_have_exact_moments_up_to_the_second(num_latents):
    nodes, weights = _nodes(num_latents, torch.float64, torch.device("cpu"))
    assert_close(weights.sum(), torch.ones((), dtype=torch.float64), **tolerance(torch.float64))
    assert_close(weights @ nodes, torch.zeros(num_latents, dtype=torch.float64), **tolerance(torch.float64))
    eye = torch.eye(num_latents, dtype=torch.float64)
    assert_close((nodes * weights.unsqueeze(-1)).mT @ nodes, eye, **tolerance(torch.float64))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_sites_maximize_the_bound_over_beliefs_that_factorize(name, rng):
    """Against the bound itself, climbed by automatic differentiation in means and factors of dense covariances."""
    likelihood, n = LIKELIHOODS[name], 3
    C = likelihood.num_latents
    X, y = rows(likelihood, rng, n)
    gp = batch_gp(C)
    prior = gp.predict(X)
    K = prior.covariance.expand(C, n, n)
    sites, info = find_sites(DenseBelief(torch.zeros(C, n, dtype=K.dtype), K), likelihood, y, SiteRule())
    assert bool(info.is_converged.all())
    precision = K.inverse() + torch.diag_embed(1.0 / sites.variance)
    S = precision.inverse()
    m = (S @ (sites.targets / sites.variance).unsqueeze(-1)).squeeze(-1)

    def bound(mean, root):
        covariance = root @ root.mT
        fit = likelihood.expected_log_density(mean, covariance.diagonal(dim1=-2, dim2=-1), y).sum()
        quadratic = (mean.unsqueeze(-2) @ K.inverse() @ mean.unsqueeze(-1)).sum()
        trace = (K.inverse() * covariance).sum()
        return fit - 0.5 * (quadratic + trace - torch.logdet(covariance).sum())

    root = torch.linalg.cholesky(K).clone(memory_format=torch.contiguous_format)
    values = [torch.zeros_like(m).requires_grad_(), root.requires_grad_()]
    optimizer = torch.optim.LBFGS(values, max_iter=200, tolerance_grad=1e-10, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = -bound(*values)
        loss.backward()
        return loss

    optimizer.step(closure)
    best = bound(*values).item()
    assert_close(bound(m, torch.linalg.cholesky(S)).item(), best, **approximation(1e-8, "iteration"))
    assert_close(m, values[0].detach(), **approximation(1e-4, "iteration"))


# Of means and standard deviations; Softmax averages over 256 points.
BEST = {"softmax of 3": 5e-3, "heteroskedastic": 1e-6}


@pytest.mark.parametrize("name", BEST)
def test_the_belief_is_the_best_that_factorizes_over_latent_functions(name, rng):
    """Of one observation: the bound is highest, as brute force over a grid of nodes finds it.

    The noise variance and the mean of a single observation are the hardest case: each explains it alone, and a belief
    that factorizes is a quarter narrower than the exact one.
    """
    likelihood = LIKELIHOODS[name]
    C = likelihood.num_latents
    X, y = rows(likelihood, rng, 1)
    gp = batch_gp(C)
    after, prior = gp.condition(X, y, likelihood=likelihood).predict(X), gp.predict(X).variance.squeeze(-1)
    nodes, weights = map(torch.as_tensor, np.polynomial.hermite_e.hermegauss(32 if C == 2 else 20))
    z = torch.cartesian_prod(*[nodes] * C).mT
    w = torch.cartesian_prod(*[weights / weights.sum()] * C).prod(-1)

    def loss(values):
        values = torch.tensor(values, requires_grad=True)
        mean, log_deviation = values.unflatten(0, (2, C))
        f = mean.unsqueeze(-1) + log_deviation.exp().unsqueeze(-1) * z
        divergence = 0.5 * (((2 * log_deviation).exp() + mean.square()) / prior - 2 * log_deviation).sum()
        value = divergence - w @ likelihood.log_density(f, y).squeeze(0)
        value.backward()
        return value.item(), values.grad.numpy()

    best = minimize(loss, np.zeros(2 * C), jac=True, options={"gtol": 1e-9}).x
    limits = approximation(BEST[name], "quadrature")
    assert_close(after.mean.squeeze(-1), torch.as_tensor(best[:C]), **limits)
    assert_close(after.variance.squeeze(-1).sqrt(), torch.as_tensor(best[C:]).exp(), **limits)


def test_the_belief_is_close_to_the_exact_posterior(rng):
    """Of one observation, by importance sampling; what is left out are correlations between latent functions."""
    name = "softmax of 3"
    likelihood = LIKELIHOODS[name]
    C = likelihood.num_latents
    X, y = rows(likelihood, rng, 1)
    after = batch_gp(C).condition(X, y, likelihood=likelihood).predict(X)
    f = 2.0**0.5 * torch.randn(C, 200_000, generator=rng, dtype=torch.float64)
    weights = torch.softmax(likelihood.log_density(f, y), dim=-1)
    mean = (weights * f).sum(-1)
    deviation = (weights * f.square()).sum(-1).sub(mean.square()).sqrt()
    assert_close(after.mean.squeeze(-1) / deviation, mean / deviation, **judgement(absolute=0.15))
    assert_close(after.variance.squeeze(-1).sqrt() / deviation, torch.ones_like(mean), **judgement(absolute=0.15))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_absorbing_and_conditioning_agree_at_the_inducing_points(name, dtype, rng):
    likelihood = LIKELIHOODS[name]
    gp = batch_gp(likelihood.num_latents, m=4, dtype=dtype)
    _, y = rows(likelihood, rng, 4, dtype)
    X = gp.inducing_points[..., :4, :]
    X = X if X.dim() == 2 else X[0]
    absorbed, info = gp.absorb(X, y, likelihood=likelihood, inducing="keep")
    conditioned = gp.condition(X, y, likelihood=likelihood)
    assert bool(info.site_info.is_converged.all())
    limits = approximation(1e-4 if dtype == torch.float64 else 5e-2, "iteration")
    assert_close(absorbed.predict(X).mean, conditioned.predict(X).mean, **limits)
    assert_close(absorbed.predict(X).variance, conditioned.predict(X).variance, **limits)


def test_single_rows_are_absorbed_and_points_exchanged(rng):
    likelihood = Softmax(3)
    gp = batch_gp(3, m=4)
    for _ in range(3):
        X, y = rows(likelihood, rng, 1)
        gp, info = gp.absorb(3.0 * X, y, likelihood=likelihood)
        assert bool(info.site_info.is_converged.all())
    assert gp.num_inducing == 4


def test_noise_that_changes_is_found(rng):
    X = torch.rand(400, 1, generator=rng, dtype=torch.float64)
    y = (6 * X[:, 0]).sin() + (0.05 + 0.6 * X[:, 0]) * torch.randn(400, generator=rng, dtype=torch.float64)
    gp, _ = batch_gp(2).absorb(X, y, likelihood=HeteroskedasticGaussian(), inducing="keep")
    noise = (0.5 * gp.predict(torch.tensor([[0.1], [0.9]], dtype=torch.float64)).mean[1]).exp()
    assert_close(noise, torch.tensor([0.11, 0.59], dtype=torch.float64), **judgement(relative=0.25))


def test_a_gp_of_another_number_of_latent_functions_is_refused(rng):
    X, y = rows(Softmax(3), rng, 2)
    with pytest.raises(OptionError, match="functions"):
        batch_gp(2).condition(X, y, likelihood=Softmax(3))
