from paper.figures.fig1_conditioning import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_of


def outcomes(*, shift=0.0, after_first=0.1, after_new=0.1):
    def function(shift):
        moments = {"mean": [[shift] * 3] * 2, "deviation": [[1.0] * 3] * 2}
        data = {"inputs": [0.0, 1.0], "targets": [0.0, 0.5], "num_first": 1, "noise_variance": 0.0}
        return {"x": [0.0, 1.0, 2.0], "truth": [0.0] * 3, **moments, **data}

    volatility = {
        **function(0.1),
        "truth": [0.1] * 3,
        "rmse": [[0.1, 1.0], [after_first, after_new]],
        "nll": [[0.0, 1.0], [0.0, 0.5]],
    }
    found = {("function", method): [function(shift * (method != "reference"))] for method in FIGURE.methods}
    return found | {("volatility", method): [volatility] for method in FIGURE.methods}


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (
        ({}, "reproduced"),
        ({"after_first": 0.2}, "partly"),
        ({"after_new": 2.0}, "partly"),
        ({"shift": 0.5}, "not"),
    )
    evidence = "at most"

    def records(self, num_trials, **changes):
        return records_of(FIGURE, outcomes(**changes), num_trials=num_trials)
