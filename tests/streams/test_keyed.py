import numpy as np
import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ArgumentTypeError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.storage import load, save
from streamgp.streams.keyed import KeyedLearner
from streamgp.testing.tolerances import belief_rounding, rounding


@pytest.fixture(scope="module")
def result():
    X = torch.rand(30, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return sg.fit(X, 7.0 + torch.sin(4.0 * X[:, 0]), num_inducing=6, max_iterations=3, standardize=True)


def rows(n, seed=1):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, 2)), 7.0 + rng.standard_normal(n)


def test_each_key_learns_as_a_model_of_its_own_that_absorbs(result):
    X, y = rows(12)
    keys = list("aabcabcaacba")
    learner = KeyedLearner.from_fit(result).learn(keys[:5], X[:5], y[:5]).learn(keys[5:], X[5:], y[5:])
    assert dict(zip(learner.keys, learner.counts.tolist(), strict=True)) == {"a": 6, "b": 3, "c": 3}
    scaling, fresh = result.scaling, KeyedLearner.from_fit(result).prior
    for key in "abc":
        chosen = [i for i, each in enumerate(keys) if each == key]
        inputs, targets = scaling.inputs(torch.tensor(X[chosen])), scaling.targets(torch.tensor(y[chosen]))
        alone, _ = fresh.absorb(
            inputs, targets, noise_variance=float(result.likelihood.noise_variance), inducing="keep"
        )
        ours, same = learner.of(key).predict(inputs, covariance=True), belief_rounding(alone)
        assert_close(ours.mean, alone.predict(inputs).mean, **same)
        assert_close(ours.covariance, alone.predict(inputs, covariance=True).covariance, **same)
        mean, variance = learner.predict([key] * len(chosen), X[chosen])
        assert_close(mean, scaling.target_shift + scaling.target_scale * ours.mean)
        noise = result.likelihood.noise_variance
        assert_close(
            variance, scaling.target_scale**2 * (ours.covariance.diagonal() + noise), **rounding(variance.dtype)
        )


def test_keys_do_not_learn_from_each_other_and_the_original_is_untouched(result):
    X, y = rows(4)
    one = KeyedLearner.from_fit(result).learn(["a", "b"], X[:2], y[:2])
    two = one.learn(["b", "b"], X[2:], y[2:])
    assert_close(two.means[0], one.means[0], rtol=0, atol=0)
    assert one.counts.tolist() == [1, 1]
    mean, _ = one.predict(["unseen"], X[:1])
    prior = KeyedLearner.from_fit(result).predict(["a"], X[:1])[0]
    assert_close(mean, prior)


def test_learners_survive_a_file(result, tmp_path):
    X, y = rows(5)
    learner = KeyedLearner.from_fit(result).learn(["a", "b", 3, "a", "b"], X, y)
    save(learner, tmp_path / "keyed")
    again = load(tmp_path / "keyed", kind=KeyedLearner)
    assert again.keys == ("a", "b", 3)
    assert_close(again.predict(["a", 3], X[:2]), learner.predict(["a", 3], X[:2]), rtol=0, atol=0)


def test_wrong_rows_are_refused(result):
    learner = KeyedLearner.from_fit(result)
    X, y = rows(3)
    with pytest.raises(ShapeError, match="one key for each row"):
        learner.learn(["a"], X, y)
    with pytest.raises(ShapeError, match="y must have shape"):
        learner.learn(["a"] * 3, X, y[:2])
    with pytest.raises(ValueRangeError, match="no row of the key 'z'"):
        learner.of("z")
    counts = sg.fit(X, np.ones(3), likelihood="poisson", num_inducing=2, max_iterations=1)
    with pytest.raises(UnsupportedError, match="Gaussian noise of one variance"):
        KeyedLearner.from_fit(counts)


def test_keys_that_cannot_be_keys_are_refused_by_their_row():
    X = np.random.default_rng(0).random((20, 1))
    learner = KeyedLearner.from_fit(sg.fit(X, X[:, 0], num_inducing=4))
    for act in (lambda keys: learner.learn(keys, X[:2], X[:2, 0]), lambda keys: learner.predict(keys, X[:2])):
        with pytest.raises(ArgumentTypeError, match="row 1 is a list"):
            act(["a", ["b"]])
