"""Fig. 3 a on made records."""

from paper.figures.fig3a_hartmann import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import make_records, records_with_ends

AS_CLAIMED = {"exact-qnei": 3.1, "exact-qkg": 3.1, "svgp-qnei": 3.0, "svgp-qkg": 3.1}
AS_CLAIMED |= {
    "exact-qei": 2.5,
    "svgp-qei": 2.5,
    "random": 1.5,
    "svgp-uncentered": 3.2,
    "adam-qnei": 3.0,
    "adam-qkg": 3.1,
}


def records_of(ends, num_trials):
    def outcome(end):
        return {"num_evaluations": [10, 13, 16], "best": [0.5, 1.0, end], "seconds": [0.2, 0.3]}

    return records_with_ends(FIGURE, ends, outcome, num_trials=num_trials)


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (
        ({}, "reproduced"),
        ({"svgp-qnei": 3.3}, "partly"),
        ({"svgp-qkg": 2.7}, "not"),
        (dict.fromkeys(AS_CLAIMED, 1.0) | {"random": 2.0, "exact-qkg": 3.0, "exact-qnei": 3.0}, "not"),
    )
    evidence = "over 5 trials"

    def records(self, num_trials, **changes):
        return records_of(AS_CLAIMED | changes, num_trials)


def test_the_table_has_the_last_values():
    table, _ = FIGURE.tables(records_of(dict.fromkeys(FIGURE.methods, 2.0), 1))
    assert all(row[1].startswith("2.0") for row in table.rows)
    assert "after 16 evaluations" in table.caption


def test_a_table_counts_the_runs_that_found_nothing():
    def outcome(problem, method, seed):
        best = 0.4 if method == "random" or (method == "svgp-qkg" and seed == 1) else 3.0
        return {"num_evaluations": [10, 13], "best": [0.4, best], "seconds": [0.2]}

    _, table = FIGURE.tables(make_records(FIGURE, outcome, num_trials=3))
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["random"] == ("3 of 3", "–")
    assert rows["SVGP, qKG"][0] == "1 of 3"
    assert rows["SVGP, qKG"][1].startswith("3.0")
    assert rows["SVGP, qNEI"][0] == "0 of 3"


def test_a_table_tells_what_the_mistake_does_where_both_points_are_known():
    ends = {"svgp-qkg": (3.0, 3.2), "svgp-uncentered": (3.25, 3.2)}

    def outcome(problem, method, seed):
        best, recommended = ends.get(method, (3.0, 3.0))
        best += 0.01 * seed
        return {"num_evaluations": [10, 13], "best": [0.5, best], "recommended": [0.4, recommended], "seconds": [0.2]}

    _, _, table = FIGURE.tables(make_records(FIGURE, outcome, num_trials=3))
    assert [row[0] for row in table.rows] == [
        "SVGP, qKG",
        "SVGP, qKG with uncentered pseudo-data",
        "with the mistake less without",
    ]
    right, mistaken, difference = (row[1] for row in table.rows)
    assert right.startswith("-0.19")
    assert mistaken.startswith("0.06")
    assert difference.startswith("+0.25")
