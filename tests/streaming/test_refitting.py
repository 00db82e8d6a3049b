from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.errors import NumericalError
from streamgp.streaming import StreamLearner, StreamSettings, fitting
from streamgp.streaming.refitting import is_settled, relearn
from streamgp.streaming.rows import Rows


def _rows(rng, n, *, low=0.0, high=10.0):
    X = low + (high - low) * torch.rand(n, 1, generator=rng, dtype=torch.float64)
    y = torch.sin(X.squeeze(-1)) + 0.1 * torch.randn(n, generator=rng, dtype=torch.float64)
    return Rows(X.numpy(), y.unsqueeze(0).numpy())


def test_hyperparameters_that_cannot_be_learned_stay_as_they_were(rng, monkeypatch):
    def fail(*_, **__):
        raise NumericalError("no positive definite matrix")

    rows, settings = _rows(rng, 40), StreamSettings(num_inducing=8)
    before = relearn(rows, settings, before=None).model
    monkeypatch.setattr(fitting, "learn_hyperparameters", fail)
    after = relearn(rows, settings, before=before).model
    assert after.hyperparameters.kernel is before.hyperparameters.kernel
    assert after.bank.level_noise == before.bank.level_noise


def test_weights_of_experts_go_on_where_hyperparameters_are_learned_anew(rng):
    rows, settings = _rows(rng, 40), StreamSettings(num_inducing=8)
    before = relearn(rows, settings, before=None, num_unjudged=40).model
    after = relearn(rows, settings, before=before).model
    assert np.array_equal(after.mixture.log_weights, before.mixture.log_weights)


def test_hyperparameters_are_learned_from_the_rows_that_believed_half_lives_reach(rng, monkeypatch):
    seen = []

    def learn(X, Y, **options):
        seen.append(len(X))
        return options["before"], 0.0

    rows, settings = _rows(rng, 500), StreamSettings(num_inducing=125)
    model = relearn(rows.part(0, 60), settings, before=None).model
    monkeypatch.setattr(fitting, "learn_hyperparameters", learn)
    e = len(model.mixture.log_weights)
    for best in (0, 4):  # forgets nothing, half-life of 20 rows
        log_weights = np.full(e, -20.0)
        log_weights[best] = 0.0
        believed = replace(model, mixture=replace(model.mixture, log_weights=log_weights))
        relearn(rows, settings, before=believed, is_new=False)
    assert seen == [500, 200]


def test_many_rows_are_thinned_evenly_and_the_last_one_stays(rng):
    rows = _rows(rng, 50)
    few = rows.thinned(20)
    index = [int((rows.inputs == x).nonzero()[0][0]) for x in few.inputs]
    assert len(index) == 20
    assert index[-1] == 49
    assert {later - earlier for earlier, later in pairwise(index)} <= {2, 3}
    assert np.array_equal(few.targets, rows.targets[:, index])
    assert rows.thinned(50) is rows


@pytest.mark.slow
def test_a_stream_that_began_in_a_corner_recovers_its_hyperparameters(rng):
    rows = _rows(rng, 800)
    order = rows.inputs.squeeze(-1).argsort()
    learner = StreamLearner(StreamSettings(num_inducing=20, warmup=50, buffer_size=200, half_life=None))
    learner, _ = learner.learn(rows.inputs[order], rows.targets[0, order])
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
    learner, _ = StreamLearner(settings).learn(rows.inputs, rows.targets[0])
    assert any(report.is_kept for report in learner.refits)
    assert float(learner.model.bank.process.prior.kernel.base_kernel.lengthscale) == pytest.approx(0.7)


@pytest.mark.slow
def test_a_refit_does_not_take_what_came_before_a_change_for_noise():
    numbers = np.random.default_rng(3)
    X = numbers.uniform(-2.0, 2.0, (900, 2))
    sign = np.where(np.arange(900) < 450, 1.0, -1.0)
    y = sign * np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.15 * numbers.standard_normal(900)
    model, errors = sg.StreamingGPRegressor(), np.zeros(900)
    for rows in (slice(i, i + 10) for i in range(0, 900, 10)):
        errors[rows] = np.abs(y[rows] - model.predict(X[rows])) if rows.start else 0.0
        model.partial_fit(X[rows], y[rows])
    assert [each.num_seen for each in model.refits_] == [400, 800]
    before, after = errors[700:800].mean(), errors[810:].mean()
    assert after < 1.5 * before


def test_a_refit_waits_only_while_nothing_has_changed(rng):
    settings = StreamSettings(num_inducing=8)
    model = relearn(_rows(rng, 40), settings, before=None).model
    weights = np.full_like(model.mixture.log_weights, 1e-6)
    weights[0] = 1.0
    still = replace(model, mixture=replace(model.mixture, log_weights=np.log(weights)))
    assert is_settled(still, settings, 8000, 9000)
    assert not is_settled(still, settings, 5000, 6000)  # more rows tell more
    assert not is_settled(still, settings, 9000, 13_000)  # a buffer of new ones
    assert not is_settled(still, StreamSettings(num_inducing=8, refit=1000), 8000, 9000)  # as the user wants it
    assert not is_settled(still, StreamSettings(max_inducing=1000), 8000, 9000)  # there is room for more points
    assert is_settled(still, StreamSettings(), 8000, 9000)
    moving = replace(model, mixture=replace(model.mixture, log_weights=np.log(weights[::-1])))
    assert not is_settled(moving, settings, 8000, 9000)
    mixture = still.mixture
    for _ in range(100):
        mixture = mixture.calibrated(np.full((len(weights), 1, 1), 2.0))
    assert not is_settled(replace(model, mixture=mixture), settings, 8000, 9000)  # errors twice as large
