import pytest
import torch
from botorch.acquisition.active_learning import qNegIntegratedPosteriorVariance
from torch.testing import assert_close

from paper.baselines.exact_nipv import FixedNoiseGP
from streamgp.errors import ValueRangeError

# The inducing points of the twin carry a jitter, and BoTorch's solves one of their own.
CLOSE = {"rtol": 1e-6, "atol": 1e-7}


@pytest.fixture
def data(rng):
    X = torch.rand(9, 2, generator=rng, dtype=torch.float64)
    return X, torch.sin(5.0 * X[:, 0]) + X[:, 1], 0.01 + 0.02 * torch.rand(9, generator=rng, dtype=torch.float64)


@pytest.mark.slow
def test_the_twin_predicts_and_integrates_as_botorch_does(rng, data):
    gp = FixedNoiseGP.fit(*data)
    X = torch.rand(12, 2, generator=rng, dtype=torch.float64)
    posterior = gp.model.posterior(X)
    mean, variance = gp.predict(X)
    assert_close(mean, posterior.mean.squeeze(-1).detach(), **CLOSE)
    assert_close(variance, posterior.variance.squeeze(-1).detach(), **CLOSE)
    ours, theirs = (qNegIntegratedPosteriorVariance(model, X[:6], X_pending=X[6:7]) for model in (gp.twin, gp.model))
    assert_close(ours(X[7:].unsqueeze(-2)), theirs(X[7:].unsqueeze(-2)).detach(), **CLOSE)


def test_the_chosen_candidates_lower_the_integrated_variance_most(rng, data):
    gp = FixedNoiseGP.fit(*data, is_refitted=False)
    candidates, targets = torch.rand(7, 2, generator=rng, dtype=torch.float64), data[0] + 0.1
    joint = gp.twin.gps[0].predict(torch.cat([candidates, targets]), covariance=True).covariance
    chosen = gp.choose(candidates, targets, num_chosen=3)
    expected: list[int] = []
    for _ in range(3):
        gains = joint[:7, 7:].square().sum(-1) / (joint.diagonal()[:7] + data[2].mean())
        gains[expected] = -1.0
        best = int(gains.argmax())
        expected.append(best)
        joint = joint - joint[:, best].outer(joint[best]) / (joint[best, best] + data[2].mean())
    assert chosen == expected


@pytest.mark.slow
def test_choices_are_those_of_botorch(rng, data):
    gp = FixedNoiseGP.fit(*data, is_refitted=False)
    candidates, targets = torch.rand(7, 2, generator=rng, dtype=torch.float64), data[0] + 0.1
    chosen = gp.choose(candidates, targets, num_chosen=3)
    for number, index in enumerate(chosen):
        pending = candidates[chosen[:number]] if number else None
        values = qNegIntegratedPosteriorVariance(gp.model, targets, X_pending=pending)(candidates.unsqueeze(-2))
        values[chosen[:number]] = -torch.inf
        assert int(values.argmax()) == index


def test_hyperparameters_stay_unless_they_are_learned(data):
    first = FixedNoiseGP.fit(*data)
    second = FixedNoiseGP.fit(*data, start=first, is_refitted=False)
    assert_close(first.predict(data[0]), second.predict(data[0]))


def test_choosing_more_than_there_are_is_refused(data):
    gp = FixedNoiseGP.fit(*data, is_refitted=False)
    with pytest.raises(ValueRangeError, match="3 candidates cannot be chosen of 2"):
        gp.choose(data[0][:2], data[0], num_chosen=3)
