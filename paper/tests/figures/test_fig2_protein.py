from paper.figures.fig2_protein import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_of


def outcomes(*, middle=0.05, end=0.05):
    """Resampling is worse than the others by so much in the middle and at the end of the stream."""

    def trial(seed, method):
        gap = method == "resample"
        start = 0.8 + 0.01 * seed
        return {"num_seen": [0, 5, 10], "rmse": [start, start + gap * middle * (1 + 0.1 * seed), start + gap * end]}

    return {("protein", method): [trial(seed, method) for seed in range(3)] for method in FIGURE.methods}


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"end": 0.0}, "partly"), ({"middle": -0.1, "end": -0.05}, "not"))
    evidence = "Fixed points less pivoted Cholesky at the end"

    def records(self, num_trials, **changes):
        return records_of(FIGURE, outcomes(**changes), num_trials=num_trials)


def test_lines_that_have_not_run_are_left_out_and_named():
    some = {pair: trials for pair, trials in outcomes().items() if pair[1] in ("pivoted", "resample")}
    records = records_of(FIGURE, some)
    assert FIGURE.draw(records).axes
    assert "O-SVGP" not in FIGURE.describe(records)
    values, verdicts = FIGURE.tables(records)
    assert len(values.rows) == 2
    assert {row[0]: row[2] for row in verdicts.rows}["O-SVGP"] == "no shared trials"
