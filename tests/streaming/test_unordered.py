from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.unordered import learn_unordered
from streamgp.testing.tolerances import tolerance


def waves(rng, n):
    X = torch.rand(n, 1, generator=rng, dtype=torch.float64)
    return X, torch.sin(6 * X[:, 0]) + 0.1 * torch.randn(n, generator=rng, dtype=torch.float64)


@pytest.mark.slow
def test_a_data_set_as_long_as_the_warm_up_is_learned_as_a_stream_is(rng):
    X, y = waves(rng, 16)
    settings = StreamSettings(num_inducing=8, warmup=16)
    at_once, _ = learn_unordered(StreamLearner(settings), X, y)
    stream, _ = StreamLearner(settings).learn(X, y)
    assert_close(at_once.predict(X).mean, stream.predict(X).mean, **tolerance(torch.float64))
    assert at_once.next_refit == stream.next_refit
    assert at_once.settings is settings


@pytest.mark.parametrize(("n", "num_first"), [(5, 5), (30, 20), (300, 20)])
def test_units_are_those_of_the_first_rows_of_warm_up_or_buffer(rng, n, num_first):
    X, y = waves(rng, n)
    settings = StreamSettings(num_inducing=8, warmup=10, buffer_size=20, half_life=3.0, refit="never")
    learner, _ = learn_unordered(StreamLearner(settings), X, y)
    assert_close(learner.model.units.lower, X[:num_first].amin(0))
    assert_close(learner.model.units.upper, X[:num_first].amax(0))
    assert learner.num_seen == n
    assert learner.is_warm == (n >= 10)
    # All rows count alike, though the half-life is short: the first are known as well as the last.
    early = (learner.predict(X[:5]).mean - torch.sin(6 * X[:5, 0])).abs().mean()
    assert early < 0.15


def test_refits_of_a_data_set_are_those_of_doubling_and_those_of_the_stream_after_it_are_by_policy(rng):
    X, y = waves(rng, 170)
    settings = StreamSettings(num_inducing=8, warmup=10, buffer_size=20)
    learner, info = learn_unordered(StreamLearner(settings), X, y)
    assert [report.num_seen for report in info.refits] == [40, 80, 160]
    assert learner.next_refit == 320
    every, info = learn_unordered(
        StreamLearner(StreamSettings(num_inducing=8, warmup=10, buffer_size=20, refit=60)), X, y
    )
    assert [report.num_seen for report in info.refits] == [80, 140]
    assert every.next_refit == 200


def test_there_are_inducing_points_for_all_rows_of_a_data_set_from_the_start():
    settings = StreamSettings(max_inducing=500)
    assert settings.room(4000).most == 200
    assert replace(settings, num_expected=8000).room(4000).most == 400
    assert replace(settings, num_expected=8000).room(9000).most == 450
