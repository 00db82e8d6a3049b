"""Sites reach the bound that a long fit by GPyTorch reaches, judged by GPyTorch."""

import gpytorch
import pytest
import torch
from gpytorch.variational import CholeskyVariationalDistribution, NaturalVariationalDistribution
from tests.support.gpytorch_models import SVGP

import streamgp as sg
from streamgp.likelihoods import from_gpytorch
from streamgp.sites import SiteRule

LIKELIHOODS = {
    "bernoulli": (gpytorch.likelihoods.BernoulliLikelihood(), lambda f: (f > 0).double()),
    "beta": (gpytorch.likelihoods.BetaLikelihood().double(), lambda f: torch.sigmoid(f).clamp(0.02, 0.98)),
}


def model_with(belief, X):
    model = SVGP(X, distribution=belief)
    model.variational_strategy._variational_distribution.mean_init_std = 0.0
    model.covar_module.requires_grad_(False)
    model.covar_module.outputscale = 2.0
    model.mean_module.requires_grad_(False)
    return model


def bound(model, likelihood, X, y):
    model.train()
    with torch.no_grad(), gpytorch.settings.num_gauss_hermite_locs(64):
        return gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))(model(X), y).item() * len(y)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("num_inducing", [25, 10])
def test_one_batch_of_everything_reaches_the_full_variational_optimum(rng, name, num_inducing):
    likelihood, outcome = LIKELIHOODS[name]
    X = torch.rand(25, 2, generator=rng, dtype=torch.float64)
    y = outcome((6 * X[:, 0]).sin() + 0.3 * torch.randn(25, generator=rng))
    Z = X[:num_inducing].clone()
    theirs = model_with(NaturalVariationalDistribution, Z)
    theirs(X)  # GPyTorch initializes the belief at the first call
    optimizer = gpytorch.optim.NGD(theirs.variational_parameters(), num_data=25, lr=0.1)
    for _ in range(400):
        optimizer.zero_grad()
        (-gpytorch.mlls.VariationalELBO(likelihood, theirs, num_data=25)(theirs(X), y)).backward()
        optimizer.step()
    ours = model_with(CholeskyVariationalDistribution, Z)
    start = sg.from_gpytorch(ours)
    gp, info = start.absorb(X, y, likelihood=from_gpytorch(likelihood), sites=SiteRule(tolerance=1e-9), inducing="keep")
    belief = ours.variational_strategy._variational_distribution
    belief.variational_mean.data.copy_(gp.whitened_mean)
    belief.chol_variational_covar.data.copy_(torch.linalg.cholesky(gp.whitened_covariance))
    assert info.site_info.is_converged.all()
    assert bound(ours, likelihood, X, y) >= bound(theirs, likelihood, X, y) - 1e-3
