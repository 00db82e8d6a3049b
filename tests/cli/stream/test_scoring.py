import math

import numpy as np
import pytest
import torch

from streamgp.cli.stream.rows import Row
from streamgp.cli.stream.scoring import learn, num_inducing, score
from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.baselines import ValueBaseline
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.scoring import ClassScore, ValueScore
from streamgp.tables.lines import Position


def rows(targets, total=None):
    return [Row(i + 2, Position(i + 2, 0), {}, target, total) for i, target in enumerate(targets)]


def inputs(num_rows):
    return torch.tensor([[float(i % 3), 1.0] for i in range(num_rows)], dtype=torch.float64)


def test_before_the_first_row_there_is_nothing_to_predict_from():
    learner = StreamLearner(StreamSettings())
    scored = score(learner, rows([1.0, 2.0]), inputs(2), ValueScore(), num_rows=0)
    assert scored.entries[1] == {"row": 2, "line": 3, "prediction": None, "target": 2.0}
    assert scored.score.metrics.num_rows == 0
    assert scored.score.baseline == ValueBaseline(2, (2.0,), (1.5,))
    assert num_inducing(learner) == 0


@pytest.mark.slow
def test_labels_are_scored_by_their_probabilities():
    first = rows(["a", "b", "a"] * 2)
    learner, _ = learn(OneVsRest(StreamSettings("bernoulli", num_inducing=3, warmup=6)), first, inputs(6))
    before = ClassScore().seen(["a", "b", "a"] * 2)
    scored = score(learner, rows(["a", "b", "new", None]), inputs(4), before, num_rows=6)
    probabilities = learner.predict(torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], dtype=torch.float64)).tolist()
    first, second, unseen, nothing = scored.entries
    assert first["probabilities"] == dict(zip("ab", probabilities[0], strict=True))
    assert first["nlpd"] == pytest.approx(-math.log(6 / 7 * probabilities[0][0]))
    assert second["nlpd"] == pytest.approx(-math.log(6 / 7 * probabilities[1][1]))
    assert unseen["nlpd"] == pytest.approx(math.log(7.0))
    a, b = probabilities[2]
    metrics = scored.score.metrics
    last = [now - before for now, before in zip(metrics.totals, metrics.history[-2].totals, strict=True)]
    assert last[metrics.measures.index("brier")] == pytest.approx(a**2 + b**2 + 1.0)
    assert last[metrics.measures.index("is_correct")] == 0.0
    assert (metrics.num_rows, "nlpd" in nothing) == (3, False)
    assert metrics.mean("is_most_frequent") == pytest.approx(1 / 3)
    assert len(scored.errors) == 3
    assert num_inducing(learner) == 3


def test_rows_without_a_target_are_predicted_and_not_learned():
    learner, _ = learn(StreamLearner(StreamSettings(num_inducing=3, warmup=6)), rows([1.0, 2.0, 3.0]), inputs(3))
    scored = score(learner, rows([None, 2.5]), inputs(2), ValueScore().seen(np.array([[3.0]])), num_rows=3)
    missing, known = scored.entries
    assert missing.keys() == known.keys() - {"nlpd"}
    assert missing["target"] is None
    assert known["nlpd"] == pytest.approx(-float(learner.predict(inputs(2)[1:]).log_density(torch.tensor([2.5]))))
    assert scored.score.metrics.num_rows == 1
    assert len(scored.errors) == 1
    assert learn(learner, rows([None, None]), inputs(2))[0] is learner
