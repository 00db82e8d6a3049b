from dataclasses import replace

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

from streamgp.conditioning import SparseGP
from streamgp.errors import NumericalError
from streamgp.streaming import StreamLearner, StreamSettings, refitting
from streamgp.streaming.refitting import absorb_rows, first_fit, refit
from streamgp.streaming.rows import Rows


def _rows(rng, n, *, low=0.0, high=10.0):
    X = low + (high - low) * torch.rand(n, 1, generator=rng, dtype=torch.float64)
    return Rows(X, torch.sin(X.squeeze(-1)) + 0.1 * torch.randn(n, generator=rng, dtype=torch.float64))


def _prior(model):
    return SparseGP.from_prior(model.gp.kernel, model.gp.inducing_points, mean=model.gp.mean)


def _with_lengthscale(model, lengthscale, rows):
    """The model with another lengthscale, having seen the rows."""
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = lengthscale
    gp, _ = absorb_rows(SparseGP.from_prior(kernel, model.gp.inducing_points), rows, model, inducing="keep")
    return replace(model, gp=gp)


def test_a_refit_that_predicts_the_latest_rows_worse_is_undone_and_reported(rng, monkeypatch):
    rows = _rows(rng, 60)
    model = first_fit(rows, StreamSettings(num_inducing=15))
    monkeypatch.setattr(
        refitting, "_learn", lambda model, anchor, rows, settings, *, is_fresh: _with_lengthscale(model, 1e-3, rows)
    )
    after, report = refit(model, _prior(model), rows, settings=StreamSettings(), num_seen=60)
    assert after is model
    assert not report.is_kept
    assert report.gain < 0.0
    assert report.num_seen == 60
    assert "predicted worse" in report.reason


def test_the_better_of_two_starts_is_kept(rng, monkeypatch):
    rows = _rows(rng, 60)
    model = replace(first_fit(rows, StreamSettings(num_inducing=15)))
    poor = _with_lengthscale(model, 0.05, model.scaled(rows))
    monkeypatch.setattr(
        refitting,
        "_learn",
        lambda model, anchor, rows, settings, *, is_fresh: _with_lengthscale(model, 0.4 if is_fresh else 0.02, rows),
    )
    after, report = refit(poor, _prior(poor), rows, settings=StreamSettings(), num_seen=60)
    assert report.is_kept
    assert float(after.gp.kernel.base_kernel.lengthscale) == pytest.approx(0.4)


def test_a_refit_that_fails_leaves_the_model_as_it_was(rng, monkeypatch):
    def fail(*_, **__):
        raise NumericalError("no positive definite matrix")

    rows = _rows(rng, 30)
    model = first_fit(rows, StreamSettings(num_inducing=8))
    monkeypatch.setattr(refitting, "_learn", fail)
    after, report = refit(model, _prior(model), rows, settings=StreamSettings(), num_seen=30)
    assert after is model
    assert not report.is_kept
    assert report.reason == "no positive definite matrix"


@pytest.mark.slow
def test_a_stream_that_began_in_a_corner_recovers_its_hyperparameters(rng):
    rows = _rows(rng, 800)
    order = rows.inputs.squeeze(-1).argsort()
    learner = StreamLearner(StreamSettings(num_inducing=20, warmup=50, buffer_size=200))
    learner, _ = learner.learn(rows.inputs[order], rows.targets[order])
    W = torch.linspace(0.5, 9.5, 60, dtype=torch.float64).unsqueeze(-1)
    # The warm-up has seen less than a tenth of the range, in which the sine is a line.
    assert learner.num_outside > 400
    assert float((learner.predict(W).mean - torch.sin(W.squeeze(-1))).square().mean().sqrt()) < 0.1


@pytest.mark.slow
def test_parameters_that_the_user_froze_stay(rng):
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = 0.7
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    settings = StreamSettings(kernel=kernel, num_inducing=15, warmup=8, buffer_size=50)
    rows = _rows(rng, 130)
    learner, _ = StreamLearner(settings).learn(rows.inputs, rows.targets)
    assert any(report.is_kept for report in learner.refits)
    assert float(learner.model.gp.kernel.base_kernel.lengthscale) == pytest.approx(0.7)
