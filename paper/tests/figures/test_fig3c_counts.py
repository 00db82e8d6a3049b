"""Fig. 3 c on made records."""

from paper.figures.fig3c_counts import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_with_ends

AS_CLAIMED = {"svgp-qkg": 3.1, "svgp-qnei": 2.9, "svgp-qei": 2.5, "random": 1.5, "adam-qnei": 2.9, "adam-qkg": 3.1}


def outcome(end):
    return {"num_evaluations": [10, 13], "best": [0.5, end], "seconds": [0.2]}


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"svgp-qei": 3.0}, "partly"), ({"svgp-qnei": 3.2}, "not"))

    def records(self, num_trials, **changes):
        return records_with_ends(FIGURE, AS_CLAIMED | changes, outcome, num_trials=num_trials)
