"""Against an estimate by many samples, and expected improvement where nothing is uncertain."""

import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from gpytorch.kernels import RBFKernel
from gpytorch.means import ZeroMean
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import Context
from streamgp.acquisition.feasible_objective import FeasibleObjective
from streamgp.acquisition.noisy_improvement import NoisyImprovement
from streamgp.likelihoods import Gaussian
from streamgp.loops import Box
from streamgp.testing.tolerances import approximation

BOX = Box.from_bounds([(0.0, 1.0)] * 2)


def known(rng, noise, num_outputs=1, n=7):
    """Exact GPs of noisy outcomes, their model and their inputs."""
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    kernel = RBFKernel()
    kernel.lengthscale = 0.4
    gps = []
    for j in range(num_outputs):
        y = torch.sin(5.0 * X[:, 0] + j) + X[:, 1]
        prior = sg.SparseGP.from_prior(kernel, X, mean=ZeroMean())
        gps.append(prior.absorb(X, y, noise_variance=noise, inducing="keep")[0])
    return sg.OnlineGP(gps, Gaussian(noise)), X


def make(model, X, *, objective=None, pending=None, num_samples=256, seed=0):
    context = Context(
        model=model,
        objective=objective or FeasibleObjective(),
        space=BOX,
        baseline=X,
        observed=torch.zeros(len(X), dtype=torch.float64),
        pending=X[:0] if pending is None else pending,
    )
    return NoisyImprovement(context, num_samples=num_samples, seed=seed)


@pytest.mark.parametrize(
    ("num_outputs", "objective"),
    [(1, FeasibleObjective((-1.0,))), (3, FeasibleObjective((1.0,), ((None, 1.2), (-1.0, 1.3)), cost=2.0))],
)
def test_it_equals_an_estimate_by_joint_samples(rng, num_outputs, objective):
    model, X = known(rng, 0.1, num_outputs)
    new = torch.rand(6, 1, 2, generator=rng, dtype=torch.float64)
    pending = torch.tensor([[0.3, 0.4]], dtype=torch.float64)
    found = make(model, X, objective=objective, pending=pending, num_samples=1024)(new).exp()
    before = len(X) + 1
    points = torch.cat([X, pending, new[:, 0]])
    samples = torch.stack([gp.sample(points, 20_000, generator=rng) for gp in model.gps], dim=-1)
    is_feasible = objective.violation(samples) <= 0.0
    score = objective.score(samples)
    best = score[:, :before].masked_fill(~is_feasible[:, :before], -objective.cost).amax(-1, keepdim=True)
    gain = (score[:, before:] - best).clamp_min(0.0) * is_feasible[:, before:]
    # Known points that are rarely the best are left out.
    assert ((found - gain.mean(0)).abs() < 4.0 * gain.std(0) / len(gain) ** 0.5 + 0.01 * gain.mean(0).max()).all()


def test_without_noise_it_is_expected_improvement(rng):
    model, X = known(rng, 1e-8)
    best = model.posterior(X).mean.max()
    new = torch.rand(20, 1, 2, generator=rng, dtype=torch.float64)
    function = make(model, X, num_samples=4)
    assert len(function.rivals) == 1
    expected = LogExpectedImprovement(model, best)(new)
    is_near = expected > -30.0
    assert_close(function(new)[is_near], expected[is_near], **approximation(1e-3, "model"))


def test_gradients_are_those_of_the_value(rng):
    objective = FeasibleObjective((1.0,), ((None, 0.6),), cost=2.0)
    function = make(*known(rng, 0.1, 2), objective=objective, num_samples=8)
    new = torch.rand(3, 1, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, (new,))


def test_a_pending_point_is_worth_nothing_any_more(rng):
    model, X = known(rng, 0.01)
    function = make(model, X)
    new = torch.tensor([[[0.9, 0.9]]], dtype=torch.float64)
    before = function(new)
    function.set_X_pending(new[0])
    assert function(new) < before - 10.0
    function.set_X_pending(None)
    assert_close(function(new), before)


def test_points_that_cannot_be_the_best_are_left_out(rng):
    model, X = known(rng, 1e-4, n=12)
    assert len(make(model, X).rivals) < 4
    noisy, X = known(rng, 1.0, n=12)
    assert len(make(noisy, X).rivals) > 4
