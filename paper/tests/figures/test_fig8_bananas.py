from paper.figures.fig8_bananas import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_of


def outcomes(*, remembered=0.9, variance=0.5, weak=()):
    """Accuracy on the first strip at the end, and variance of the second after its batch; `weak` methods forget."""

    def trial(method):
        last = 0.5 if method in weak else remembered
        return {
            "first": [0.0, 1.0],
            "second": [0.0, 1.0],
            "inputs": [[0.1, 0.2], [0.8, 0.7]],
            "classes": [0, 1],
            "strip_sizes": [1000, 1000],
            "num_rows": [1, 2],
            "probability": [[[0.5, 0.5], [0.1, 0.9]]] * 2,
            "variance": [[[1.0, 1.0], [0.5, 0.5]]] * 2,
            "accuracy": [0.7, 0.9],
            "nlpd": [0.5, 0.3],
            "strip_accuracy": [[0.9, 0.5], [last, 0.9]],
            "strip_variance": [[0.5, 1.0], [0.5, variance]],
        }

    return {("bananas", method): [trial(method)] for method in FIGURE.methods}


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (
        ({}, "reproduced"),
        ({"variance": 1.5}, "partly"),
        ({"weak": ("paper",)}, "partly"),
        ({"remembered": 0.5}, "not"),
    )

    def records(self, num_trials, **changes):
        return records_of(FIGURE, outcomes(**changes), num_trials=num_trials)
