import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.streaming.sharpness import (
    _ALONE,
    _CAUTION,
    _FIRST,
    _FROM_FREQUENCIES,
    _FROM_LAST,
    _SWITCHING,
    Sharpness,
)
from streamgp.testing.tolerances import judgement, tolerance


def random_probabilities(rng, n, k=3):
    return rng.dirichlet(np.ones(k), size=n)


def powered(probabilities, power, share=0.0, frequencies=1.0):
    each = probabilities**power * np.asarray(frequencies) ** share
    return each / each.sum(-1, keepdims=True)


def drawn(rng, probabilities):
    return np.array([rng.choice(len(row), p=row) for row in probabilities])


def losses(plain, labels):
    sharpness, losses = Sharpness(), []
    for row, label in zip(plain, labels, strict=True):
        losses.append(-math.log(sharpness.applied(row[None])[0, label]))
        sharpness = sharpness.learned(row[None], np.array([label]))
    return np.array(losses)


def test_probabilities_stay_probabilities():
    rng = np.random.default_rng(0)
    plain = random_probabilities(rng, 20)
    sharpness = Sharpness().learned(plain, drawn(rng, powered(plain, 2.0)))
    assert_close(sharpness.applied(plain).sum(-1), np.ones(20), **tolerance(torch.float64))
    assert math.isclose(sum(sharpness.weights), 1.0)


def test_before_any_label_the_order_of_the_classes_stays():
    plain = random_probabilities(np.random.default_rng(0), 20)
    assert (Sharpness().applied(plain).argsort(-1) == plain.argsort(-1)).all()


def all_ways(frequencies, following):
    """Powers of probabilities, and what they are multiplied with."""
    ones = np.ones_like(frequencies)
    return [
        *((a, ones) for a in _ALONE),
        *((a, frequencies ** (1.0 - a)) for a in _FROM_FREQUENCIES),
        *((a, following * frequencies**-a) for a in _FROM_LAST),
    ]


def test_weights_are_those_of_a_way_that_may_change_from_row_to_row():
    # All sequences of ways, each with its prior probability: a reference in the size of 23³.
    rng = np.random.default_rng(1)
    plain = random_probabilities(rng, 3)
    labels, counts = drawn(rng, plain), np.array([4.0, 0.0, 1.0])
    frequencies = (counts + 0.5) / (counts + 0.5).sum()
    # Of the four labels with one before them, two were that one again.
    same = (2.0 + 0.5) / (4.0 + 1.0)
    following = (1.0 - same) * frequencies / (frequencies[0] + frequencies[1])
    following[2] = same
    assert math.isclose(following.sum(), 1.0)
    each = np.array(
        [
            [powered(row[None], a, 1.0, factor)[0, y] for a, factor in all_ways(frequencies, following)]
            for row, y in zip(plain, labels, strict=True)
        ]
    )
    stay = (1.0 - _SWITCHING) * np.eye(len(_FIRST)) + _SWITCHING * _FIRST[None, :]
    one, two, three = each**_CAUTION
    joint = np.einsum("a,a,ab,b,bc,c,cd->d", _FIRST, one, stay, two, stay, three, stay)
    before = Sharpness(counts=tuple(counts), last=2, num_same=2.0)
    after = before.learned(plain, labels)
    assert_close(np.array(after.weights), joint / joint.sum(), **tolerance(torch.float64))
    assert_close(before.applied(plain[:1])[0, labels[0]], _FIRST @ each[0], **tolerance(torch.float64))
    assert after.counts == tuple(counts + np.bincount(labels, minlength=3))
    assert (after.last, after.num_same) == (labels[-1], 2.0 + (labels == 2).sum())


def test_elsewhere_the_last_label_says_nothing():
    rng = np.random.default_rng(6)
    plain = random_probabilities(rng, 6)
    staying = Sharpness()
    for _ in range(30):
        staying = staying.learned(plain[:1], np.array([1]))
    is_next = np.array([True, False] * 3)
    found, anywhere = staying.applied(plain, is_next), staying.applied(plain)
    assert_close(found[::2], anywhere[::2], **tolerance(torch.float64))
    assert (found[1::2, 1] < anywhere[1::2, 1]).all()
    assert_close(found.sum(-1), np.ones(6), **tolerance(torch.float64))


def test_many_rows_are_changed_like_few(monkeypatch):
    rng = np.random.default_rng(3)
    plain = random_probabilities(rng, 25)
    sharpness = Sharpness().learned(plain[:10], drawn(rng, plain[:10]))
    expected = sharpness.applied(plain)
    monkeypatch.setattr("streamgp.streaming.sharpness._MOST_AT_ONCE", 10)
    assert_close(sharpness.applied(plain), expected, **tolerance(torch.float64))
    assert sharpness.applied(plain[:0]).shape == (0, 3)


@pytest.mark.parametrize("num_classes", [2, 4])
def test_where_inputs_say_nothing_frequencies_are_predicted(num_classes):
    rng = np.random.default_rng(4)
    truth = np.linspace(1.0, 4.0, num_classes)
    truth /= truth.sum()
    labels = rng.choice(num_classes, 600, p=truth)
    plain = powered(truth * np.exp(rng.standard_normal((600, num_classes))), 1.0)  # sees what is not there
    as_they_were = -np.log(plain[np.arange(600), labels]).mean()
    best = -np.log(truth[labels]).mean()
    assert losses(plain, labels).mean() < best + 0.2 * (as_they_were - best)


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


def test_labels_of_noise_are_predicted_no_worse_than_by_their_frequencies():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((400, 2)), rng.choice(4, 400, p=[0.6, 0.2, 0.15, 0.05])
    model, found = stream(X, y)
    frequencies = np.bincount(y[:100], minlength=4) / 100
    assert found.mean() > np.log(frequencies[y[100:]]).mean() - 0.02
    assert sum(model.state_.learner.sharpness.counts) == 400


@pytest.mark.parametrize("num_classes", [2, 4])
def test_labels_that_stay_are_predicted_as_well_as_by_the_last_one(num_classes):
    rng = np.random.default_rng(7)
    y = np.repeat(rng.integers(num_classes, size=30), rng.integers(1, 25, size=30))[:300]
    X = rng.standard_normal((len(y), 2))
    model = sg.StreamingGPClassifier(num_inducing=20)
    right = []
    for i in range(len(y)):
        if i >= 50:
            right.append(model.predict(X[i : i + 1])[0] == y[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.mean(right) >= np.mean(y[50:] == y[49:-1]) - 0.02
    far = model.predict_proba(X[:1] + 50.0)  # where the stream is not
    assert far.max() < model.predict_proba(X[:1]).max()


@pytest.mark.filterwarnings("ignore:.* far outside the range of the warm-up")
def test_frequencies_count_labels_that_nothing_was_predicted_of():
    X = np.linspace(0, 1, 40)[:, None]
    model = sg.StreamingGPClassifier(num_inducing=10, warmup=10)
    for start in range(0, 40, 10):  # one class alone at first
        model.partial_fit(X[start : start + 10], ["a", "a", "b", "c"][start // 10 : start // 10 + 1] * 10)
    assert model.state_.learner.sharpness.counts == (20.0, 10.0, 10.0)


def test_a_fit_leaves_predictions_as_they_are_until_labels_were_predicted():
    X, y = rings(6, 200)
    model = sg.StreamingGPClassifier(num_inducing=20).fit(X[:150], y[:150])
    sharpness = model.state_.learner.sharpness
    plain = random_probabilities(np.random.default_rng(0), 5)
    assert_close(sharpness.applied(plain), plain, **tolerance(torch.float64))
    assert sum(sharpness.counts) == 150
    assert sharpness.last is None
    model.partial_fit(X[150:], y[150:])
    assert min(model.state_.learner.sharpness.weights) > 0.0


def test_half_lives_of_the_users_own_leave_predictions_as_they_are():
    model, _ = stream(*rings(1, 200), half_life=None)
    assert model.state_.learner.sharpness == Sharpness()
    fitted = sg.StreamingGPClassifier(num_inducing=10, half_life=None).fit(*rings(1, 60))
    assert fitted.state_.learner.sharpness == Sharpness()


def test_labels_that_several_counted_add_and_those_of_their_beginning_count_once():
    begun = Sharpness().counting(np.array([0, 0, 1]))
    one, two = (begun.counting(np.array(labels)) for labels in ([1, 1], [0, 2]))
    assert one.joined([two], [begun]).counts == begun.counting(np.array([1, 1, 0, 2])).counts
    assert one.joined([], []) == one


def test_a_reset_begins_anew():
    learner = stream(*rings(1, 200))[0].state_.learner
    assert learner.reset().sharpness == learner.rewarm().sharpness == Sharpness()


def test_labels_are_drawn_as_often_as_they_are_predicted():
    X, y = rings(2)
    model, _ = stream(X, y)
    draws = model.sample(X[:5], 2000, random_state=0)
    often = (draws[:, :, None] == model.classes_).mean(0)
    assert_close(often, model.predict_proba(X[:5]), **judgement(absolute=0.06))


def test_it_survives_files(tmp_path):
    model, _ = stream(*rings(3, 200))
    model.save(tmp_path / "classes.sgp")
    assert sg.load(tmp_path / "classes.sgp").state_.learner.sharpness == model.state_.learner.sharpness
