"""Acquisition functions of BoTorch on a model that knows gradients and areas."""

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient, qLogNoisyExpectedImprovement
from botorch.optim import optimize_acqf
from gpytorch.kernels import RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.likelihoods import Gaussian


def model(*, has_evidence):
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = 0.4
    rng = torch.Generator().manual_seed(0)
    points = torch.rand(25, 2, generator=rng, dtype=torch.float64)
    one = sg.OnlineGP([sg.SparseGP.from_prior(kernel, points)], [Gaussian(1e-4)])
    X = torch.tensor([[0.1, 0.2], [0.8, 0.3], [0.3, 0.9]], dtype=torch.float64)
    peak = torch.tensor([0.6, 0.7], dtype=torch.float64)
    y, slopes = -(X - peak).square().sum(-1), -2.0 * (X - peak)
    area = sg.evidence.average(points, (2 * points[:, 0]).long())
    sums = area.sums(-(area.points - peak).square().sum(-1))
    if not has_evidence:
        return one.condition_on_observations(X, y.unsqueeze(-1)), X
    rows = sg.evidence.combine(X, sg.evidence.gradient(X), area)
    return one.condition_on_observations(rows, torch.cat([y, slopes.flatten(), sums]).unsqueeze(-1)), X


@pytest.mark.parametrize("name", ["qLogNEI", "qKG"])
def test_rules_see_what_gradients_and_areas_tell(name):
    found = []
    for has_evidence in (True, False):
        gp, X = model(has_evidence=has_evidence)
        torch.manual_seed(0)
        if name == "qKG":
            function = qKnowledgeGradient(gp, num_fantasies=4)
        else:
            function = qLogNoisyExpectedImprovement(gp, X, prune_baseline=False)
        bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
        options = {"maxiter": 15, "seed": 0}
        point, value = optimize_acqf(function, bounds, q=1, num_restarts=2, raw_samples=16, options=options)
        # A knowledge gradient is the mean that is expected at the best place with one value more: zero at the peak.
        found.append(abs(float(value)) if name == "qKG" else float((point - torch.tensor([0.6, 0.7])).norm()))
    assert found[0] < 0.15 < found[1]
