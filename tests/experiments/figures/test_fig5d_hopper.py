"""Fig. 5 d on made records."""

from streamgp.experiments.figures.fig5d_hopper import FIGURE
from streamgp.testing.figure_laws import FigureLaws
from streamgp.testing.made_records import make_records

ENDS = {"svgp-ts": 2010, "svgp-lts": 2300, "exact-ts": 1900, "exact-lts": 1950, "cma": 1400, "ars": 400, "random": 980}


class TestFigure(FigureLaws):
    figure = FIGURE

    def records(self, num_trials):
        def outcome(problem, method, seed):
            end = ENDS[method] + 10 * ((seed * 7 + len(method)) % 5) - 20
            return {
                "num_evaluations": [100, 400],
                "best": [400.0, end],
                "seconds": [2.0, 3.0],
                "replayed": end - 50.0,
                "failures": [],
            }

        return make_records(FIGURE, outcome, num_trials=num_trials)

    def test_what_is_claimed_is_reproduced(self):
        judgement = FIGURE.judge(self.records(8))
        assert judgement.verdict == "reproduced", judgement.evidence
