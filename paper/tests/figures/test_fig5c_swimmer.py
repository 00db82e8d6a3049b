"""Fig. 5 c on made records."""

import pytest

from paper.figures.fig5c_swimmer import FIGURE
from paper.schema.record import Records
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import make_records

AS_CLAIMED = {"svgp-ts": 355, "svgp-lts": 360, "exact-ts": 350, "exact-lts": 352, "cma": 280, "ars": 100, "random": 246}


def records_of(ends, num_trials=5):
    def outcome(problem, method, seed):
        end = ends[method] + ((seed * 7 + len(method)) % 5) - 2
        return {
            "num_evaluations": [100, 200],
            "best": [40.0, end],
            "seconds": [2.0, 3.0],
            "replayed": end - 5.0 if seed else None,
            "failures": ["call 3, episode: an error"] if seed == 1 else [],
        }

    return make_records(FIGURE, outcome, num_trials=num_trials)


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"svgp-ts": 300}, "not"))
    evidence = "(352)"  # of the published curve
    num_trials = 8

    def records(self, num_trials, **changes):
        return records_of(AS_CLAIMED | changes, num_trials)


def test_lines_that_have_not_run_are_said_to_be_missing():
    records = records_of(AS_CLAIMED)
    some = Records(tuple(each for each in records.all if each.method in ("svgp-ts", "random")))
    judgement = FIGURE.judge(some)
    assert "SVGP, LTS above TS (not run)" in judgement.evidence
    _, verdicts = FIGURE.tables(Records(tuple(each for each in some.all if each.problem == "swimmer")))
    said = {row[0]: row[2] for row in verdicts.rows}
    assert said["LA-MCTS, SVGP, TS"] == "better"
    assert said["CMA-ES"] == "no shared trials"


@pytest.mark.parametrize("count", [100, 200])
def test_the_table_has_published_values_at_the_same_number_of_calls(count):
    def outcome(problem, method, seed):
        return {"num_evaluations": [count], "best": [1.0], "seconds": [1.0], "replayed": 1.0, "failures": []}

    table = FIGURE.tables(make_records(FIGURE, outcome, num_trials=2))[0]
    assert table.rows[0][2] == {100: "276", 200: "352"}[count]
