import math

import pytest
import torch

from streamgp.cli.reading.lines import Position
from streamgp.cli.stream.rows import Row
from streamgp.cli.stream.scoring import learn, num_inducing, score
from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.one_vs_rest import OneVsRest


def rows(targets, total=None):
    return [Row(i + 2, Position(i + 2, 0), (float(i % 3), 1.0), target, total) for i, target in enumerate(targets)]


def test_before_the_first_row_there_is_nothing_to_predict_from():
    learner = StreamLearner(StreamSettings())
    scored = score(learner, rows([1.0, 2.0]), 0)
    assert scored.entries[1] == {"row": 2, "line": 3, "prediction": None, "target": 2.0}
    assert scored.measures == {}
    assert num_inducing(learner) == 0


@pytest.mark.slow
def test_labels_are_scored_by_their_probabilities():
    learner, _ = learn(OneVsRest(StreamSettings("bernoulli", num_inducing=3, warmup=6)), rows(["a", "b", "a"] * 2))
    scored = score(learner, rows(["a", "b", "new"]), 6)
    probabilities = learner.predict(torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], dtype=torch.float64)).tolist()
    first, second, unseen = scored.entries
    assert first["probabilities"] == dict(zip("ab", probabilities[0], strict=True))
    assert first["nlpd"] == pytest.approx(-math.log(probabilities[0][0]))
    assert second["nlpd"] == pytest.approx(-math.log(probabilities[1][1]))
    assert unseen["nlpd"] == pytest.approx(math.log(7.0))
    a, b = probabilities[2]
    assert scored.measures["brier"][2] == pytest.approx(a**2 + b**2 + 1.0)
    assert scored.measures["is_correct"][2] == 0.0
    assert num_inducing(learner) == 3
