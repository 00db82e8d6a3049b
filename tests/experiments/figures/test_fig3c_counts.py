"""Fig. 3 c on made records."""

import pytest

from streamgp.experiments.figures.fig3c_counts import FIGURE
from streamgp.testing.figure_laws import FigureLaws
from streamgp.testing.made_records import make_records

AS_CLAIMED = {"svgp-qkg": 3.1, "svgp-qnei": 2.9, "svgp-qei": 2.5, "random": 1.5}


def records_of(ends, num_trials=5):
    def outcome(problem, method, seed):
        end = ends[method] + 0.01 * ((seed * 7 + len(method)) % 5)
        return {"num_evaluations": [10, 13], "best": [0.5, end], "seconds": [0.2]}

    return make_records(FIGURE, outcome, num_trials=num_trials)


class TestFigure(FigureLaws):
    figure = FIGURE

    def records(self, num_trials):
        return records_of(AS_CLAIMED, num_trials)


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [({}, "reproduced"), ({"svgp-qei": 3.0}, "partly"), ({"svgp-qnei": 3.2}, "not")],
)
def test_the_verdict_follows_from_the_records(changed, verdict):
    assert FIGURE.judge(records_of(AS_CLAIMED | changed)).verdict == verdict
