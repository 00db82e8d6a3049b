import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch.testing import assert_close

from streamgp.errors import ShapeError, ValueRangeError
from streamgp.streaming import OneVsRest, StreamLearner, StreamSettings
from streamgp.streaming.one_vs_rest import PredictedLabels
from streamgp.streaming.scoring import label_loss
from streamgp.testing.tolerances import tolerance


def settings(**options):
    kernel = ScaleKernel(RBFKernel())
    kernel.outputscale = 9.0
    return StreamSettings(
        **{"likelihood": "bernoulli", "kernel": kernel.requires_grad_(False), "num_inducing": 12, "warmup": 8}
        | {"refit": "never"}
        | options
    )


def blobs(rng, n, *, num_classes=3):
    index = torch.randint(num_classes, (n,), generator=rng)
    X = torch.randn(n, 2, generator=rng, dtype=torch.float64) + 4.0 * index.unsqueeze(-1)
    return X, ["abcdef"[one] for one in index.tolist()]


def accuracy(state, X, y):
    best = state.predict(X).argmax(-1).tolist()
    return sum(state.classes[index] == label for index, label in zip(best, y, strict=True)) / len(y)


@pytest.mark.slow
def test_two_classes_are_one_learner_of_the_second(rng):
    X, y = blobs(rng, 30, num_classes=2)
    state, _ = OneVsRest.from_classes(settings(), ["a", "b"]).learn(X, y)
    learner, _ = StreamLearner(settings()).learn(X, torch.tensor([float(label == "b") for label in y]).double())
    assert len(state.learner.model.bank.constant) == 1
    second = learner.predict(X).mean
    expected = state.sharpness.applied(torch.stack([1.0 - second, second], -1).numpy())
    assert_close(state.predict(X), torch.from_numpy(expected), **tolerance(torch.float64))


def test_probabilities_are_those_of_each_against_the_rest_normalized_and_mixed(rng):
    X, y = blobs(rng, 30)
    state, info = OneVsRest.from_rows(settings(), X, y)
    prediction, model = state.learner.predict(X), state.learner.model
    latent = (torch.from_numpy(values) for values in (prediction.latent_mean, prediction.latent_variance))
    each = prediction.likelihood.predictive_mean(*latent).numpy()
    expected = (model.mixture.weights[:, None, None] * each / each.sum(1, keepdims=True)).sum(0).T
    expected = torch.from_numpy(state.sharpness.applied(expected))
    assert_close(state.predict(X), expected, **tolerance(torch.float64))
    assert_close(state.predict(X).sum(-1), torch.ones(30, dtype=torch.float64))
    assert info.num_outside == 0
    assert accuracy(state, X, y) > 0.9


@pytest.mark.slow
def test_rows_may_come_one_by_one_and_new_classes_with_them(rng):
    """At the end of the warm-up everything is learned from the same rows, however they came."""
    X, y = blobs(rng, 8)
    block, _ = OneVsRest(settings()).learn(X, y)
    rows = OneVsRest(settings())
    for index in range(8):
        rows, _ = rows.learn(X[index : index + 1], y[index : index + 1])
    assert rows.classes == block.classes == tuple(dict.fromkeys(y))
    assert rows.num_seen == block.num_seen == 8
    assert torch.equal(rows.predict(X).argmax(-1), block.predict(X).argmax(-1))


def test_a_third_class_is_one_that_no_row_in_the_buffer_was_of(rng):
    X, y = blobs(rng, 40, num_classes=2)
    state, _ = OneVsRest(settings()).learn(X, y)
    wider = state.with_classes(["c"])
    assert wider.learner.buffer.targets.shape == (3, 40)
    assert wider.learner.buffer.targets[2].sum() == 0.0
    assert wider.predict(X)[:, 2].max() < 0.3
    assert accuracy(wider, X, y) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("num_known", [1, 2, 3])
def test_a_late_class_starts_from_the_buffer_as_negatives_and_is_learned(rng, num_known):
    X, y = blobs(rng, 50, num_classes=num_known)
    state, _ = OneVsRest(settings(num_inducing=36)).learn(X, y)  # enough for the short lengthscale
    assert state.is_warm
    W, labels = blobs(rng, 40, num_classes=num_known + 1)
    later, info = state.learn(W, labels)
    assert len(later.classes) == num_known + 1
    assert later.num_seen == 90
    assert accuracy(later, W, labels) > 0.85
    assert later.learner.buffer.num_rows == 90
    assert later.learner.buffer.targets[-1, :50].sum() == 0.0
    assert later.is_warm
    assert info.num_outside >= 0
    assert state.num_seen == 50  # the original is as it was


@pytest.mark.slow
def test_a_class_that_comes_when_the_warm_up_is_one_row_is_learned(rng):
    state, _ = OneVsRest(settings(warmup=1)).learn(torch.zeros(3, 2).double(), ["a"] * 3)
    state, _ = state.learn(torch.ones(3, 2).double(), ["b"] * 3)
    assert state.num_seen == 6


@pytest.mark.slow
def test_reset_and_rewarm_keep_the_classes(rng):
    X, y = blobs(rng, 30)
    state, _ = OneVsRest(settings()).learn(X, y)
    for again in (state.reset(), state.rewarm()):
        assert again.classes == state.classes
        assert again.num_seen == 30
        learned, _ = again.learn(X, y)
        assert accuracy(learned, X, y) > 0.8


@pytest.mark.slow
def test_an_empty_block_changes_nothing(rng):
    X, y = blobs(rng, 10)
    state, _ = OneVsRest(settings()).learn(X, y)
    same, info = state.learn(X[:0], [])
    assert_close(same.predict(X), state.predict(X), rtol=0.0, atol=0.0)
    assert info.refits == ()


@pytest.mark.slow
def test_labels_and_inputs_are_checked(rng):
    X, y = blobs(rng, 10)
    state, _ = OneVsRest(settings()).learn(X, y)
    with pytest.raises(ShapeError, match="y must have 10 labels, one for each row of X, but has 9"):
        state.learn(X, y[:9])
    with pytest.raises(ShapeError, match="X has 1 columns, but the stream so far had 2"):
        state.learn(X[:, :1], y)
    with pytest.raises(ValueRangeError, match="X must be finite"):
        state.learn(X / 0.0, y)


def test_a_lone_class_leaves_some_probability_for_one_that_is_to_come(rng):
    X = torch.randn(30, 2, generator=rng, dtype=torch.float64)
    seen: list[PredictedLabels] = []
    state, _ = OneVsRest(StreamSettings("bernoulli", num_inducing=10)).learn(X[:3], ["a"] * 3, on_predicted=seen.append)
    early = float(state.predict(X[3:4])[0, 0])
    assert 0.5 < early < 0.95
    state, _ = state.learn(X[3:29], ["a"] * 26, on_predicted=seen.append)
    late = state.predict(X[29:])
    assert late.shape == (1, 1)
    assert early < float(late[0, 0]) < 1.0
    seen.clear()
    state.learn(X[29:], ["b"], on_predicted=seen.append)
    assert np.array_equal(seen[0].probabilities, late)
    loss = label_loss("b", {"a": float(late[0, 0])}, num_seen=29)
    assert loss == pytest.approx(-math.log1p(-float(late[0, 0])))
    # The two are all that may come, as far as is known.
    assert math.exp(-loss) + math.exp(-label_loss("a", {"a": float(late[0, 0])}, num_seen=29)) == pytest.approx(1.0)
