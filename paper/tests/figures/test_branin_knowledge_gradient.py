import numpy as np

from paper.figures.branin_knowledge_gradient import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_of


def outcomes(weights):
    """Maps that mix the exact one with another, by a weight for each method."""
    rng = np.random.default_rng(0)

    def trial(gain):
        return {"first": [0.0, 1.0, 2.0], "second": [0.0, 1.0, 2.0], "gain": gain.tolist(), "inputs": [[0.5, 0.5]]}

    found = {("branin", method): [] for method in FIGURE.methods}
    for _ in range(4):
        exact, other = rng.random((3, 3)), rng.random((3, 3))
        for method in FIGURE.methods:
            weight = weights.get(method, 0.0)
            found["branin", method].append(trial((1 - weight) * exact + weight * other))
    return found


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"absorbed": 1.0}, "partly"), ({"conditioned": 1.0, "absorbed": 1.0}, "not"))
    evidence = "over 4 trials"

    def records(self, num_trials, **changes):
        return records_of(FIGURE, outcomes({"conditioned": 0.05, "absorbed": 0.05} | changes), num_trials=num_trials)
