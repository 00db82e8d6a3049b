import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import Context
from streamgp.acquisition.discrete_knowledge_gradient import DiscreteKnowledgeGradient
from streamgp.acquisition.feasible_objective import FeasibleObjective
from streamgp.likelihoods import Gaussian
from streamgp.loops import Box
from streamgp.testing.tolerances import approximation


@pytest.fixture
def context(rng):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.4
    gp, _ = sg.SparseGP.from_prior(kernel, X).absorb(X, torch.sin(5 * X[:, 0]), noise_variance=0.05, inducing="keep")
    model = sg.OnlineGP(gp, Gaussian(0.05))
    box = Box.from_bounds([(0.0, 1.0)] * 2)
    return Context(model, FeasibleObjective(), box, X, X[:, 0], X[:0])


def by_conditioning(context, x, W):
    """Average the best mean over outcomes on a fine grid, each of which the model is conditioned on."""
    points = torch.cat([W, x.unsqueeze(0)])
    z = torch.linspace(-8.0, 8.0, 4001, dtype=torch.float64)
    posterior = context.model.posterior(x.unsqueeze(0))
    y = posterior.mean.item() + (posterior.variance.item() + 0.05) ** 0.5 * z
    told = context.model.condition_on_observations(x.expand(len(z), 1, -1), y.reshape(-1, 1, 1))
    best = told.posterior(points).mean.squeeze(-1).amax(-1)
    return torch.trapezoid(best * torch.exp(-0.5 * z.square()) / (2 * torch.pi) ** 0.5, z)


def test_the_value_is_that_of_conditioning_on_every_outcome(context, rng):
    X, W = (torch.rand(n, 2, generator=rng, dtype=torch.float64) for n in (3, 10))
    found = DiscreteKnowledgeGradient(context, W)(X.unsqueeze(-2))
    expected = torch.stack([by_conditioning(context, x, W) for x in X])
    assert_close(found, expected, **approximation(1e-6, "quadrature"))


def test_pending_points_leave_less_to_learn(context, rng):
    X, W = (torch.rand(n, 2, generator=rng, dtype=torch.float64) for n in (1, 10))
    function = DiscreteKnowledgeGradient(context, W)
    alone = function(X.unsqueeze(-2))
    function.set_X_pending(X)
    assert function(X.unsqueeze(-2)) < alone


def test_the_value_is_differentiable(context, rng):
    X = torch.rand(2, 1, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    W = torch.rand(8, 2, generator=rng, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        DiscreteKnowledgeGradient(context, W), (X,), atol=approximation(1e-5, "finite differences")["atol"]
    )
