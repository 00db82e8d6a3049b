import numpy as np
import torch
from torch.testing import assert_close

from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.widening import widen


def test_rows_that_are_widened_are_learned_as_if_they_had_always_been_so_wide(rng):
    X = torch.rand(8, 2, generator=rng, dtype=torch.float64)
    y = X.sum(-1)
    values = torch.tensor([3.0, -1.0], dtype=torch.float64)
    wide = torch.cat([X, values.expand(8, 2)], -1)
    settings = StreamSettings(num_inducing=8, warmup=16)
    narrow, _ = StreamLearner(settings).learn(X, y)
    expected, _ = StreamLearner(settings).learn(wide, y)
    widened = widen(narrow, values.numpy())
    assert_close(widened.predict(wide).mean, expected.predict(wide).mean, rtol=0.0, atol=0.0)
    assert widened.num_dims == 4
    assert widened.next_refit == expected.next_refit
    assert narrow.num_dims == 2


def test_before_the_first_row_there_is_nothing_to_widen():
    learner = StreamLearner(StreamSettings())
    assert widen(learner, np.ones(2)) is learner
