import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.streaming.sharpness import _CAUTION, _FIRST, _POWERS, _SWITCHING, Sharpness
from streamgp.streaming.storage import _add_sharpness
from streamgp.testing.tolerances import judgement, tolerance


def random_probabilities(rng, n, k=3):
    return rng.dirichlet(np.ones(k), size=n)


def powered(probabilities, power):
    each = probabilities**power
    return each / each.sum(-1, keepdims=True)


def drawn(rng, probabilities):
    return np.array([rng.choice(len(row), p=row) for row in probabilities])


def losses(plain, labels):
    sharpness, losses = Sharpness(), []
    for row, label in zip(plain, labels, strict=True):
        losses.append(-math.log(sharpness.applied(row[None])[0, label]))
        sharpness = sharpness.learned(row[None], np.array([label]))
    return np.array(losses)


def test_probabilities_stay_probabilities_in_their_order():
    rng = np.random.default_rng(0)
    plain = random_probabilities(rng, 20)
    sharpness = Sharpness().learned(plain, drawn(rng, powered(plain, 2.0)))
    after = sharpness.applied(plain)
    assert_close(after.sum(-1), np.ones(20), **tolerance(torch.float64))
    assert (after.argsort(-1) == plain.argsort(-1)).all()
    assert math.isclose(sum(sharpness.weights), 1.0)


def test_weights_are_those_of_a_power_that_may_change_from_row_to_row():
    # All sequences of powers, each with its prior probability: a reference in the size of 8³.
    rng = np.random.default_rng(1)
    plain = random_probabilities(rng, 3)
    labels = drawn(rng, plain)
    each = [[powered(row[None], b)[0, y] for b in _POWERS] for row, y in zip(plain, labels, strict=True)]
    likelihood = np.array(each) ** _CAUTION
    stay = (1.0 - _SWITCHING) * np.eye(len(_POWERS)) + _SWITCHING * _FIRST[None, :]
    joint = np.einsum("a,a,ab,b,bc,c,cd->d", _FIRST, likelihood[0], stay, likelihood[1], stay, likelihood[2], stay)
    weights = Sharpness().learned(plain, labels).weights
    assert_close(np.array(weights), joint / joint.sum(), **tolerance(torch.float64))


@pytest.mark.parametrize("power", [0.5, 2.0, 3.0])
def test_predictions_become_as_sure_as_they_should_have_been(power):
    rng = np.random.default_rng(2)
    plain = random_probabilities(rng, 800)
    truth = powered(plain, power)
    labels = drawn(rng, truth)
    best = -np.log(truth[np.arange(800), labels]).mean()
    as_they_were = -np.log(plain[np.arange(800), labels]).mean()
    assert losses(plain, labels).mean() < best + 0.2 * (as_they_were - best)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_comes_little_is_lost(seed):
    rng = np.random.default_rng(seed)
    plain = random_probabilities(rng, 300)
    labels = rng.integers(3, size=300)
    lost = losses(plain, labels).sum() + np.log(plain[np.arange(300), labels]).sum()
    assert lost <= (-math.log(_FIRST.max()) - 300 * math.log1p(-_SWITCHING)) / _CAUTION


def rings(seed, n=400):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, (np.hypot(*X.T) * 3).astype(int) % 3


def stream(X, y, **options):
    model, log_densities = sg.StreamingGPClassifier(num_inducing=40, **options), []
    for start in range(0, len(X), 20):
        part = slice(start, start + 20)
        if start >= 100:
            log_densities.append(model.log_predictive_density(X[part], y[part]))
        model.partial_fit(X[part], y[part])
    return model, np.concatenate(log_densities)


def test_a_stream_of_classes_that_are_easy_to_tell_becomes_sure(monkeypatch):
    X, y = rings(0)
    model, found = stream(X, y)
    assert model.state_.learner.sharpness.weights != Sharpness().weights
    monkeypatch.setattr(Sharpness, "learned", lambda self, *_: self)
    _, cautious = stream(X, y)
    assert found.mean() > cautious.mean() + 0.02


def test_half_lives_of_the_users_own_leave_predictions_as_they_are():
    model, _ = stream(*rings(1, 200), half_life=None)
    assert model.state_.learner.sharpness == Sharpness()


def test_a_reset_begins_anew():
    learner = stream(*rings(1, 200))[0].state_.learner
    assert learner.reset().sharpness == learner.rewarm().sharpness == Sharpness()


def test_labels_are_drawn_as_often_as_they_are_predicted():
    X, y = rings(2)
    model, _ = stream(X, y)
    draws = model.sample(X[:5], 2000, random_state=0)
    often = (draws[:, :, None] == model.classes_).mean(0)
    assert_close(often, model.predict_proba(X[:5]), **judgement(absolute=0.06))


def test_it_survives_files_and_files_of_before_are_read(tmp_path):
    model, _ = stream(*rings(3, 200))
    model.save(tmp_path / "classes.sgp")
    assert sg.load(tmp_path / "classes.sgp").state_.learner.sharpness == model.state_.learner.sharpness
    assert _add_sharpness({"classes": (1, 2)}) == {"classes": (1, 2), "sharpness": Sharpness()}
