import math

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.likelihoods import Preference
from streamgp.loops.best import is_taken_at_its_word
from streamgp.loops.state import current
from streamgp.loops.suggest import make_context
from streamgp.testing.tolerances import rounding, sampling, within

BOX = [(0.0, 1.0), (0.0, 1.0)]


def wave(X):
    return 20.0 + 5.0 * torch.sin(4 * X).sum(-1)


@pytest.mark.slow
def test_constraints_and_success_are_outputs_of_the_model(rng):
    optimizer = sg.Optimizer(
        BOX, constraints=[sg.Constraint(upper=1.0), sg.Constraint(lower=2.0, likelihood="poisson")]
    )
    X = torch.rand(10, 2, generator=rng, dtype=torch.float64)
    counts = torch.poisson(5 * X[:, 0], generator=rng)
    optimizer.tell(X, torch.stack([wave(X), X[:, 1], counts], dim=-1))
    optimizer.tell_failure([[0.5, 0.5]])
    context = make_context(optimizer._refitted(), optimizer._settings)
    assert context.model.num_outputs == 4
    assert len(context.objective.limits) == 3
    same = within(rounding(torch.float64))
    assert context.objective.limits[1] == (pytest.approx(math.log(2.0), **same), None)
    # Ten of eleven succeeded; four fifths of (10 + 1) / (11 + 2) as odds.
    share = torch.tensor(0.8 * 11 / 13, dtype=torch.float64)
    assert context.objective.limits[2][0] == pytest.approx(float(torch.logit(share)), **same)


@pytest.mark.slow
def test_a_comparison_tells_less_of_a_utility_than_an_observation_of_it(rng):
    optimizer = sg.Optimizer(BOX, likelihood=Preference(0.1))
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    optimizer.tell_comparison(X[:3], X[3:])
    (likelihood,) = optimizer.model().likelihoods
    assert likelihood.noise_variance > 2 * 0.1**2


@pytest.mark.slow
def test_predictions_of_bent_outcomes_are_in_the_users_units(rng, tmp_path):
    optimizer = sg.Optimizer(BOX, maximize=False)
    X = torch.rand(20, 2, generator=rng, dtype=torch.float64)
    y = (8.0 * X.sum(-1)).exp()
    optimizer.tell(X, y)
    prediction, posterior = optimizer.predict(X), optimizer.model().posterior(X)
    assert optimizer.inspect(refit=False).surrogate.units[0].is_bent
    assert_close(posterior.mean.squeeze(-1).detach(), prediction.mean)
    assert_close(posterior.variance.sqrt().squeeze(-1).detach(), prediction.std)
    assert ((prediction.lower < prediction.mean) & (prediction.mean < prediction.upper)).all()
    # Over six orders of magnitude, each is right to a part of itself.
    assert (prediction.mean[y > 1e3].log() - y[y > 1e3].log()).abs().median() < 0.2
    units, far = (
        optimizer.inspect(refit=False).surrogate.units[0],
        torch.tensor([[0.95, 0.45], [0.45, 0.95]], dtype=torch.float64),
    )
    limit = float(optimizer.predict(far).mean.max())
    assert limit > units.upper_knee
    found = optimizer.predict(far, threshold=limit)
    f = found.latent_mean + found.latent_variance.sqrt() * torch.randn(20_000, 2, generator=rng, dtype=torch.float64)
    share = (units.outside(f) > limit).double().mean(0)
    assert_close(found.exceedance, share, **sampling(0.5 / 20_000**0.5))
    optimizer.save(tmp_path / "run")
    assert_close(sg.load(tmp_path / "run").predict(X).mean, prediction.mean)


@pytest.mark.slow
def test_ripples_are_not_taken_at_their_word_until_a_point_is_repeated(rng):
    X = torch.rand(30, 2, generator=rng, dtype=torch.float64)
    rugged = torch.sin(40.0 * X).sum(-1) + X.sum(-1)
    optimizer = sg.Optimizer(BOX, constraints=[sg.Constraint(upper=0.5)])
    optimizer.tell(X, torch.stack([wave(X), rugged], -1))
    surrogate = optimizer.inspect().surrogate
    assert surrogate.rough_share(1) >= surrogate.noise_share(1)
    assert not surrogate.is_deterministic(1)
    known = current(optimizer._state, optimizer._settings)
    assert not is_taken_at_its_word(surrogate, optimizer._settings, known, 1)
    optimizer.tell(X[:1], torch.stack([wave(X[:1]), rugged[:1]], -1))
    known = current(optimizer._state, optimizer._settings)
    assert is_taken_at_its_word(surrogate, optimizer._settings, known, 1)
