"""Fig. 3 b on made records."""

from paper.figures.fig3b_laser import FIGURE
from paper.schema.record import Records
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_with_ends

AS_CLAIMED = {f"exact-{rule}": 5.4 for rule in ("qei", "qnei", "qkg")}
AS_CLAIMED |= {f"svgp-{rule}": 5.0 for rule in ("qei", "qnei", "qkg")}
AS_CLAIMED |= {"ogp-ei": 4.4, "wogp-ei": 4.5, "random": 4.2, "random-cube": 4.2}


def records_of(ends, num_trials=5):
    def outcome(end):
        return {"num_evaluations": [100, 101, 102], "best": [4.1, 4.15, end], "seconds": [0.2, 0.3]}

    return records_with_ends(FIGURE, ends, outcome, num_trials=num_trials)


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"svgp-qnei": 4.0}, "partly"), ({"svgp-qkg": 4.0}, "not"))

    def records(self, num_trials, **changes):
        return records_of(AS_CLAIMED | changes, num_trials)


def test_lines_that_have_not_run_are_said_to_be_missing():
    found = records_of(AS_CLAIMED)
    part = Records(tuple(record for record in found.all if not record.method.startswith("exact")))
    judgement = FIGURE.judge(part)
    assert judgement.verdict == "partly"
    assert "exact GPs above SVGPs, mean of all rules (not run)" in judgement.evidence
    assert len(FIGURE.tables(part)[0].rows) == len(FIGURE.methods) - 3
