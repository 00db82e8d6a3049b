"""Fig. 10 c on made records."""

from paper.figures.fig10c_global import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import make_records

AS_CLAIMED = {"exact": (-2.0, 40.0), "svgp": (-2.1, 18.0), "random": (-8.0, 0.1)}


def records_of(ends, num_trials=5):
    def outcome(problem, method, seed):
        end, seconds = ends[method]
        end += 0.1 * ((seed * 7 + len(method)) % 5)
        return {"num_evaluations": [100, 120, 140], "best": [-12.0, -9.0, end], "seconds": [seconds, seconds + seed]}

    return make_records(FIGURE, outcome, num_trials=num_trials)


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"svgp": (-2.1, 39.0)}, "partly"), ({"svgp": (-6.0, 18.0)}, "not"))

    def records(self, num_trials, **changes):
        return records_of(AS_CLAIMED | changes, num_trials)
