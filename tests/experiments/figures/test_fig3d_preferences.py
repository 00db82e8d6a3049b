"""Fig. 3 d on made records."""

import pytest

from streamgp.experiments.figures.fig3d_preferences import FIGURE
from streamgp.testing.figure_laws import FigureLaws
from streamgp.testing.made_records import make_records

AS_CLAIMED = {"laplace-qnei": 5.0, "laplace-qeubo": 5.5, "svgp-qnei": 5.0, "svgp-qkg": 6.0, "svgp-qeubo": 5.8}
AS_CLAIMED |= {"svgp-exact-kg": 6.1, "random": 3.5}


def records_of(ends, num_trials=5):
    def outcome(problem, method, seed):
        end = ends[method] + 0.01 * ((seed * 7 + len(method)) % 5)
        values = [3.0, 3.2, end]
        return {"num_evaluations": [9, 12, 15], "best": values, "recommended": values, "seconds": [0.2, 0.3]}

    return make_records(FIGURE, outcome, num_trials=num_trials)


class TestFigure(FigureLaws):
    figure = FIGURE

    def records(self, num_trials):
        return records_of(AS_CLAIMED, num_trials)


@pytest.mark.parametrize(
    ("changed", "verdict"), [({}, "reproduced"), ({"laplace-qnei": 6.5}, "partly"), ({"svgp-qnei": 6.5}, "not")]
)
def test_the_verdict_follows_from_the_records(changed, verdict):
    judgement = FIGURE.judge(records_of(AS_CLAIMED | changed))
    assert judgement.verdict == verdict
    assert "By the recommended point" in judgement.evidence


def test_both_kinds_of_comparisons_have_a_table_of_values_and_one_of_verdicts():
    assert len(FIGURE.tables(records_of(AS_CLAIMED))) == 4
