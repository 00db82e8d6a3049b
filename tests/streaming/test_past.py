import numpy as np
import pytest

from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.past import sample_past
from streamgp.streaming.rows import Rows


def _rows(start: int, stop: int) -> Rows:
    numbers = np.arange(float(start), float(stop))
    return Rows(numbers[:, None], -numbers[None])


def test_all_rows_are_kept_while_there_is_room():
    past = sample_past(_rows(0, 300), 300, _rows(300, 700))
    assert past.inputs[:, 0].tolist() == list(range(700))


@pytest.mark.parametrize("size", [150, 2000])
def test_rows_are_kept_evenly_however_long_the_stream(size):
    past = None
    for start in range(0, 20 * size, size):
        past = sample_past(past, start, _rows(start, start + size))
    numbers = past.inputs[:, 0]
    assert np.array_equal(past.targets[0], -numbers)
    assert 900 < len(numbers) <= 1024
    assert (np.diff(numbers) > 0.0).all()
    counts, _ = np.histogram(numbers, bins=10, range=(0.0, 20.0 * size))
    assert counts.min() > 70
    assert counts.max() < 140


def test_a_sample_does_not_keep_the_buffer_in_memory():
    buffer = _rows(0, 4000)
    past = sample_past(None, 0, buffer.part(0, 2000))
    assert not np.shares_memory(past.inputs, buffer.inputs)


def test_a_learner_keeps_some_of_the_rows_that_left_its_buffer_until_it_begins_anew():
    learner = StreamLearner(StreamSettings(num_inducing=5, warmup=20, buffer_size=40, refit="never"))
    rows = _rows(0, 100)
    for start in range(0, 100, 10):
        learner, _ = learner.learn(rows.inputs[start : start + 10] % 7.0, np.sin(rows.inputs[start : start + 10, 0]))
    assert learner.past.num_rows + learner.buffer.num_rows == 100
    assert np.array_equal(learner.past.append(learner.buffer).inputs, rows.inputs % 7.0)
    assert learner.reset().past is None
    assert learner.rewarm().past is None
