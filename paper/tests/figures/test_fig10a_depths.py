"""Fig. 10 a on made records."""

from paper.figures.fig10a_depths import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_with_ends

SETTINGS = {"num_inducing_large": 400, "num_inducing_small": 200, "depth": 4}


def outcome(end):
    return {"num_evaluations": [100, 200], "best": [-8.0, end], "seconds": [1.0]}


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"depth8": 4.0}, "partly"), ({"depth1": 0.0, "depth2": 0.0}, "not"))

    def records(self, num_trials, **changes):
        ends = {method: changes.get(method.rpartition("-")[2], 2.0) for method in FIGURE.methods}
        return records_with_ends(FIGURE, ends, outcome, spread=0.1, num_trials=num_trials, settings=SETTINGS)
