"""Fig. 3 d on made records."""

from paper.figures.fig3d_preferences import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_with_ends

AS_CLAIMED = {"laplace-qnei": 5.0, "laplace-qeubo": 5.5, "svgp-qnei": 5.0, "svgp-qkg": 6.0, "svgp-qeubo": 5.8}
AS_CLAIMED |= {"svgp-exact-kg": 6.1, "paper-qnei": 5.0, "paper-qkg": 6.0, "random": 3.5}


def outcome(end):
    values = [3.0, 3.2, end]
    return {"num_evaluations": [9, 12, 15], "best": values, "recommended": values, "seconds": [0.2, 0.3]}


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"laplace-qnei": 6.5}, "partly"), ({"paper-qnei": 6.5}, "not"))
    evidence = "By the recommended point"

    def records(self, num_trials, **changes):
        return records_with_ends(FIGURE, AS_CLAIMED | changes, outcome, num_trials=num_trials)

    def test_both_kinds_of_comparisons_have_a_table_of_values_and_one_of_verdicts(self):
        assert len(FIGURE.tables(self.records(5))) == 4
