"""Against an estimate by many samples."""

import pytest
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from gpytorch.kernels import RBFKernel

import streamgp as sg
from streamgp.acquisition import Context
from streamgp.acquisition.feasible_objective import FeasibleObjective
from streamgp.acquisition.noisy_hypervolume import NoisyHypervolume
from streamgp.likelihoods import Gaussian
from streamgp.loops import Box

BOX = Box.from_bounds([(0.0, 1.0)] * 2)
REFERENCE = torch.tensor([-1.0, -1.5], dtype=torch.float64)


def known(rng, noise, num_outputs, n=6):
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    kernel = RBFKernel()
    kernel.lengthscale = 0.4
    prior = sg.SparseGP.from_prior(kernel, X)
    columns = [torch.sin(5.0 * X[:, 0]) + X[:, 1], X.sum(-1) - 1.0, X[:, 0] - 0.5][:num_outputs]
    gps = [prior.absorb(X, y, noise_variance=noise, inducing="keep")[0] for y in columns]
    return sg.OnlineGP(gps, Gaussian(noise)), X


def make(model, X, objective, *, pending=None, num_samples=64):
    none = X[:0] if pending is None else pending
    context = Context(model, objective, BOX, X, torch.zeros(len(X), dtype=torch.float64), none)
    return NoisyHypervolume(context, REFERENCE, num_samples=num_samples, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [(), ((None, 0.3),)])
def test_it_equals_an_estimate_by_joint_samples(rng, limits):
    objective = FeasibleObjective((1.0, -1.0), limits)
    model, X = known(rng, 0.1, 2 + len(limits))
    pending = torch.tensor([[0.3, 0.4]], dtype=torch.float64)
    new = torch.rand(3, 1, 2, generator=rng, dtype=torch.float64)
    found = make(model, X, objective, pending=pending, num_samples=256)(new).exp()
    points = torch.cat([X, pending, new[:, 0]])
    samples = torch.stack([gp.sample(points, 250, generator=rng) for gp in model.gps], dim=-1)
    scores, is_feasible = objective.scores(samples), objective.violation(samples) <= 0.0
    volume, before = Hypervolume(REFERENCE), len(X) + 1
    gains = []
    for row, kept in zip(scores, is_feasible, strict=True):
        known_row = row[:before][kept[:before]]
        base = volume.compute(known_row) if len(known_row) else 0.0
        more = [volume.compute(torch.cat([known_row, row[before + i].unsqueeze(0)])) - base for i in range(3)]
        gains.append([g if bool(kept[before + i]) else 0.0 for i, g in enumerate(more)])
    gain = torch.tensor(gains, dtype=torch.float64)
    assert ((found - gain.mean(0)).abs() < 4.0 * gain.std(0) / len(gain) ** 0.5 + 0.01 * gain.mean(0).max()).all()


def test_gradients_are_those_of_the_value(rng):
    objective = FeasibleObjective((1.0, -1.0), ((None, 0.3),))
    function = make(*known(rng, 0.1, 3), objective, num_samples=4)
    new = torch.rand(2, 1, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, (new,))


def test_a_pending_point_is_worth_little_any_more(rng):
    model, X = known(rng, 1e-4, 2)
    function = make(model, X, FeasibleObjective((1.0, 1.0)))
    new = torch.tensor([[[0.9, 0.1]]], dtype=torch.float64)
    before = function(new)
    function.set_X_pending(new[0])
    assert function(new) < before - 5.0
