"""The table of single points on made records."""

from paper.figures.table_hartmann_single import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import make_records

AS_CLAIMED = {"exact-qnei": 3.0, "svgp-qnei": 3.02, "exact-qkg": 3.1, "svgp-qkg": 3.12}


def records_of(num_trials=5, *, spread_of_single=0.1, shift_of_svgp=0.0):
    def outcome(problem, method, seed):
        spread = spread_of_single if problem.endswith("q1") else 0.02
        # All methods of a seed move together, so that paired differences have no error.
        end = AS_CLAIMED[method] - 0.1 * ("0.5" in problem) + spread * (seed - 2)
        end += shift_of_svgp * method.startswith("svgp")
        return {"num_evaluations": [10, 11], "best": [0.5, end], "seconds": [0.2]}

    return make_records(FIGURE, outcome, num_trials=num_trials)


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"spread_of_single": 0.02}, "partly"), ({"shift_of_svgp": -1.0}, "not"))

    def records(self, num_trials, **changes):
        return records_of(num_trials, **changes)


def test_the_variation_is_the_logarithm_of_the_ratio_of_variances():
    # Spreads of 0.1 and 0.02 are variances with a ratio of 25 in each trial that is left out, whose logarithm is 3.22.
    evidence = FIGURE.judge(records_of()).evidence
    assert "single points over that of batches of 3: +3.22 [+3.2, +3.2] over 5 trials (holds)" in evidence


def test_the_papers_numbers_stand_beside_ours():
    (table,) = FIGURE.tables(records_of())
    paper = {row[0]: row[2] for row in table.rows}
    # From the paper's table of single points.
    assert paper["noise 0.1, exact GP, qNEI"] == "3.14 (0.13)"
    assert paper["noise 0.1, SVGP, qKG"] == "3.18 (0.03)"
    assert paper["noise 0.5, SVGP, qNEI"] == "3.10 (0.14)"
    assert paper["noise 0.5, exact GP, qKG"] == "3.12 (0.04)"
