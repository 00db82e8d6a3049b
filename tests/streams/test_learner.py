"""Laws of a stream's learner."""

import pickle
import subprocess
import sys
from copy import deepcopy
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch
from tests.streams.streams import moving_rows

from streamgp.errors import UnsupportedError
from streamgp.storage import load, save
from streamgp.streams import Forecast, StreamLearner, StreamOptions
from streamgp.testing.tolerances import judgement, rounding, within


def learned(X, y, *, block=None, **options):
    learner = StreamLearner(X.shape[1], StreamOptions(**options))
    for start in range(0, len(y), block or len(y)):
        learner.learn(X[start : start + (block or len(y))], y[start : start + (block or len(y))])
    return learner


def same(first: Forecast, second: Forecast, condition: float = 1e4) -> None:
    for name in ("location", "scale", "degrees", "weight"):
        tolerance = rounding(torch.float64, condition=condition)
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), **tolerance)


def exactly(first: Forecast, second: Forecast) -> None:
    for name in ("location", "scale", "degrees", "weight"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("block", [1, 7, 64])
def test_rows_of_a_block_are_learned_in_order(block):
    """Refits, a budget that is spent, points that move, and a buffer that overflows within."""
    X, y = moving_rows(230)
    options = {"most_points": 24, "buffer_size": 100, "warmup": 60, "refit": 80}
    once, parts = learned(X, y, **options), learned(X, y, block=block, **options)
    same(once.predict(X[:9]), parts.predict(X[:9]))
    assert once.history.points == parts.history.points
    assert once.belief.num_points[0] <= 24


def test_the_history_has_early_points_and_drops_every_second_one_when_it_is_long():
    learner = learned(*moving_rows(140), block=50)
    early = [each.row for each in learner.history.refits if each.row < 64]
    assert len(early) >= 7
    assert [point.row for point in learner.history.points] == [*early, 64, 128]
    for row in range(192, 64 * 1200, 64):
        learner.history.note(row, learner.belief, 1.0)
    rows = [point.row for point in learner.history.points]
    assert len(rows) <= 512
    assert rows == list(range(rows[0], rows[-1] + 1, learner.history.spacing))


def test_tickets_that_are_answered_at_once_are_rows_of_a_stream():
    X, y = moving_rows(60)
    usual, asked = learned(X[:30], y[:30]), learned(X[:30], y[:30])
    usual.learn(X[30:], y[30:])
    for i in range(30, 60):
        asked.learn_ticket(asked.expect(X[i : i + 1]), y[i : i + 1])
    same(usual.predict(X), asked.predict(X))


def test_a_ticket_says_what_a_horizon_says():
    X, y = moving_rows(80)
    learner = learned(X[:70], y[:70])
    ahead = learner.predict(X[70:], horizon=np.arange(1, 11))
    parts = [learner.expect(X[i : i + 1]).prediction for i in range(70, 80)]
    for i, part in enumerate(parts):
        exactly(part, ahead.take(np.array([i])))
    far = learner.predict(X[70:], horizon=10_000)
    assert (far.variance > ahead.variance).all()


def test_late_targets_are_nearly_the_same_evidence_in_any_order():
    X, y = moving_rows(60)
    learners = [learned(X[:40], y[:40], refit="never", warmup=1, most_points=1) for _ in range(2)]
    for learner, order in zip(learners, ([0, 1, 2, 3], [0, 2, 1, 3]), strict=True):
        tickets = [learner.expect(X[i : i + 1]) for i in range(40, 44)]
        for i in order:
            learner.learn_ticket(tickets[i], y[40 + i : 41 + i])
    first, second = (learner.predict(X[44:50]).mean for learner in learners)
    # An order that is not that of time is learned by the transition backwards, which holds under the prior alone.
    np.testing.assert_allclose(first, second, **judgement(absolute=0.1))


def test_intervals_of_late_labels_hold_what_they_say():
    """A random walk whose labels come 24 rows late, as judged by what was said when it was asked."""
    rng = np.random.default_rng(3)
    y = np.cumsum(rng.standard_normal(420)) + 0.2 * rng.standard_normal(420)
    X, inside, tickets = rng.standard_normal((420, 1)), [], []
    learner = learned(X[:1], y[:1])
    for i in range(1, 420):
        tickets.append(learner.expect(X[i : i + 1]))
        if i > 24:
            late, j = tickets.pop(0), i - 24
            inside.append(abs(float(late.prediction.cumulative(y[j : j + 1])[0]) - 0.5) < 0.45)
            learner.learn_ticket(late, y[j : j + 1])
    # Errors of 24 rows overlap: what is said differs from what came in blocks.
    assert 0.75 < np.mean(inside[150:]) <= 0.99


def test_means_of_skewed_targets_are_kept():
    rng = np.random.default_rng(5)
    y = np.where(rng.random(500) < 0.85, 0.0, rng.gamma(2.0, 50.0, 500))
    X, said = rng.random((500, 2)), []
    learner = learned(X[:1], y[:1])
    learner.learn(X[1:], y[1:], on_predicted=lambda _, forecast: said.append(forecast.mean))
    assert np.concatenate(said)[50:].sum() == pytest.approx(y[51:].sum(), **within(judgement(relative=0.15)))


def test_missing_targets_pass_as_time():
    X, y = moving_rows(90)
    y[[40, 41, 60]] = np.nan
    learner = learned(X, y)
    assert learner.num_seen == 87
    assert learner.clock == 90
    assert np.isfinite(learner.predict(X).mean).all()


@pytest.mark.parametrize("copied", [deepcopy, lambda value: pickle.loads(ForkingPickler.dumps(value))])
def test_copies_go_on_exactly_and_apart(copied):
    X, y = moving_rows(120)
    learner = learned(X[:70], y[:70], refit="background")
    copy = copied(learner)
    before = learner.predict(X)
    copy.learn(X[70:], y[70:])
    exactly(learner.predict(X), before)
    learner.learn(X[70:], y[70:])
    learner.finish()
    copy.finish()
    np.testing.assert_allclose(learner.predict(X).mean, copy.predict(X).mean, **judgement(absolute=1e-3, relative=1e-3))


def test_a_file_goes_on_exactly(tmp_path):
    X, y = moving_rows(150)
    learner = learned(X[:97], y[:97], buffer_size=60)
    save(learner, tmp_path / "stream.sgp")
    loaded = load(tmp_path / "stream.sgp")
    for each in (learner, loaded):
        each.learn(X[97:], y[97:])
    exactly(learner.predict(X), loaded.predict(X))
    assert learner.history.points == loaded.history.points


def test_memory_is_bounded():
    X, y = moving_rows(900)
    sizes = []
    learner = StreamLearner(3, StreamOptions(most_points=16, buffer_size=100, refit=300, warmup=20))
    for start in range(0, 900, 300):
        learner.learn(X[start : start + 300], y[start : start + 300])
        sizes.append(len(pickle.dumps(learner)))
    assert sizes[2] < 1.1 * sizes[1]


def test_a_refit_in_the_background_finds_what_one_in_front_finds():
    X, y = moving_rows(20)
    front, behind = learned(X, y), learned(X, y, refit="background")
    behind.finish()
    assert [each.row for each in behind.history.refits] == [each.row for each in front.history.refits]
    same(front.predict(X), behind.predict(X))


@pytest.mark.slow
def test_a_process_that_ends_during_a_refit_ends_well():
    program = (
        "import numpy as np, streamgp as sg; X = np.random.default_rng(0).random((321, 4));"
        "sg.StreamingGPRegressor(refit='background', warmup=20, max_inducing=40).partial_fit(X, np.sin(9 * X[:, 0]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_was_forgotten_is_not_known_any_more():
    X, y = moving_rows(100)
    learner = learned(X, y)
    learner.reset()
    assert learner.predict(X).mean == pytest.approx(np.full(100, learner.fitted.units.target_mean))
    learner.learn(X[:5], y[:5])
    learner.rewarm()
    learner.learn(X[:30], 1000.0 + y[:30])
    assert learner.predict(X[:30]).mean == pytest.approx(1000.0 + y[:30], **within(judgement(absolute=1.0)))


def test_rows_without_order_are_not_forgotten():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (300, 2))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.05 * rng.standard_normal(300)
    learner = StreamLearner(2, StreamOptions(buffer_size=200))
    learner.learn_unordered(X[:250], y[:250])
    assert np.abs(learner.predict(X[250:]).mean - y[250:]).mean() < 0.08


def test_before_the_first_row_there_is_a_sentence():
    with pytest.raises(UnsupportedError, match="before the first row"):
        StreamLearner(2).predict(np.zeros((1, 2)))
