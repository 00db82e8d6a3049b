from paper.figures.fig6_sine import FIGURE
from paper.schema.record import Records
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_of


def outcomes(*, first=0.2, alone=0.5, together=0.02, lost=3.0):
    """RMSE of O-SGPR at the first and last mark with b = 1 and at the last with b = 16, and trace 2; trace 1 is 1."""

    def trial(method, seed):
        noise = 1e-3 * seed
        rmse = {"osgpr-1": [first, alone + noise], "osgpr-16": [together, together + noise]}.get(method, [0.01, 0.01])
        rows = [8, 16] if method.startswith("osgpr") else []
        return {
            "grid": [-1.0, 0.0, 1.0],
            "marks": [8, 16],
            "mean": [[0.0] * 3] * 2,
            "deviation": [[0.1] * 3] * 2,
            "points": [[-0.5, 0.5]] * 2,
            "rmse": rmse,
            "trace_rows": rows,
            "residual_trace": [1.0 + noise] * len(rows),
            "lost_trace": [lost] * len(rows),
            "inputs": [-0.5, 0.5],
            "targets": [0.0, 0.1],
        }

    return {("sine", method): [trial(method, seed) for seed in range(3)] for method in FIGURE.methods}


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (
        ({}, "reproduced"),
        ({"first": 0.6}, "partly"),
        ({"lost": 0.5}, "partly"),
        ({"together": 0.2}, "partly"),
        ({"alone": 0.01}, "not"),
    )
    evidence = "of streamgp 0.010"

    def records(self, num_trials, **changes):
        return records_of(FIGURE, outcomes(**changes), num_trials=num_trials)


def test_without_osvgp_the_claim_is_judged_all_the_same():
    found = records_of(FIGURE, outcomes())
    part = Records(tuple(record for record in found.all if not record.method.startswith("osvgp")))
    assert FIGURE.judge(part).verdict == "reproduced"
    assert len(FIGURE.tables(part)[0].rows) == len(FIGURE.tables(found)[0].rows) - 3
    assert FIGURE.draw(part).axes
