"""Evidence in models of BoTorch, whose transforms it goes through, and in GPs of several outputs."""

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient
from botorch.models.transforms import Log, Normalize
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ShapeError, UnsupportedError
from streamgp.testing.tolerances import approximation, tolerance


def f(X):
    return 3.0 + X[:, 0] ** 2 / 50 + X[:, 1].sin()


def slope(X):
    return torch.stack([X[:, 0] / 25, X[:, 1].cos()], dim=-1)


def test_gradients_and_averages_go_through_the_transforms(rng):
    """In the units of the user: what is conditioned on is predicted there."""
    X = 10 * torch.rand(20, 2, generator=rng, dtype=torch.float64)
    model = sg.OnlineGP.fit(X, f(X).unsqueeze(-1), num_inducing=10)
    new = 10 * torch.rand(3, 2, generator=rng, dtype=torch.float64)
    rows = sg.evidence.combine(sg.evidence.gradient(new), sg.evidence.average(new, [0, 0, 0]))
    y = torch.cat([slope(new).flatten(), f(new).mean().reshape(1)]).unsqueeze(-1)
    after = model.condition_on_observations(rows, y, torch.full_like(y, 1e-8))
    step = 1e-4
    for j in range(2):
        shift = step * torch.eye(2, dtype=torch.float64)[j]
        change = after.posterior(new + shift).mean - after.posterior(new - shift).mean
        assert_close(change.squeeze(-1) / (2 * step), slope(new)[:, j], **approximation(5e-3, "model"))
    assert_close(after.posterior(new).mean.mean(), f(new).mean(), **approximation(1e-3, "model"))
    look_ahead = qKnowledgeGradient(after, num_fantasies=2)
    value = look_ahead(torch.rand(1, 3, 2, generator=rng, dtype=torch.float64))
    assert bool(torch.isfinite(value).all())


def test_outcomes_of_the_wrong_shape_and_bent_transforms_are_refused(rng):
    X = 1.0 + torch.rand(8, 2, generator=rng, dtype=torch.float64)
    gp = sg.SparseGP.from_prior(RBFKernel().double(), X)
    rows = sg.evidence.gradient(X[:1])
    unit = Normalize(2, bounds=torch.ones(2, 2).cumsum(0))
    model = sg.OnlineGP(gp, sg.likelihoods.Gaussian(0.1), input_transform=unit)
    with pytest.raises(ShapeError, match=r"Y must have shape \(..., 2, 1\), one row for each of the evidence"):
        model.condition_on_observations(rows, torch.ones(1, 2, dtype=torch.float64))
    bent = sg.OnlineGP(gp, sg.likelihoods.Gaussian(0.1), outcome_transform=Log())
    with pytest.raises(UnsupportedError, match="Log is not linear"):
        bent.condition_on_observations(rows, torch.ones(2, 1, dtype=torch.float64))


def test_rows_of_one_output_tell_of_the_others(rng):
    Z = torch.rand(12, 2, generator=rng, dtype=torch.float64)
    gp = sg.MultiOutputGP.from_prior(MaternKernel(2.5).double(), Z, mixing=[[1.0], [2.0]])
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    areas, slopes = sg.evidence.average(X, [0, 0, 0, 1, 1, 1]), sg.evidence.gradient(X[:2])
    rows = sg.evidence.combine(gp.rows_of(areas, 0), gp.rows_of(slopes, 1))
    y = torch.randn(6, generator=rng, dtype=torch.float64)
    after = gp.condition(rows, y, noise_variance=1e-6)
    # The second output is twice the first, and so are its averages and slopes.
    single = sg.SparseGP.from_prior(MaternKernel(2.5).double(), Z)
    of_first = sg.evidence.combine(areas, slopes)
    noise = torch.tensor([1e-6] * 2 + [2.5e-7] * 4, dtype=torch.float64)
    expected = single.condition(of_first, torch.cat([y[:2], y[2:] / 2]), noise_variance=noise)
    W = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    moments = after.predict(W)
    assert_close(moments.mean[:, 0], expected.predict(W).mean, **approximation(1e-4, "jitter"))
    assert_close(moments.mean[:, 1], 2 * moments.mean[:, 0], **tolerance(torch.float64))
    absorbed, _ = gp.absorb(rows, y, noise_variance=0.1, inducing="keep")
    mean = absorbed.predict(W).mean
    assert_close(mean[:, 1], 2 * mean[:, 0], **tolerance(torch.float64))
