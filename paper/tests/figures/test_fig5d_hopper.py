"""Fig. 5 d on made records."""

from paper.figures.fig5d_hopper import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_with_ends

ENDS = {"svgp-ts": 1990, "svgp-lts": 2280, "exact-ts": 1880, "exact-lts": 1930, "cma": 1380, "ars": 380, "random": 960}


def outcome(end):
    return {
        "num_evaluations": [100, 400],
        "best": [400.0, end],
        "seconds": [2.0, 3.0],
        "replayed": end - 50.0,
        "failures": [],
    }


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"svgp-ts": 1500}, "not"))
    num_trials = 8

    def records(self, num_trials, **changes):
        return records_with_ends(FIGURE, ENDS | changes, outcome, spread=10.0, num_trials=num_trials)
