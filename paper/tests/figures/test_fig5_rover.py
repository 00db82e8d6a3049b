"""Fig. 5 on made records."""

import pytest

from paper.figures.fig5_rover import FIGURE
from paper.schema.record import Records
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import make_records

SETTINGS = {"num_inducing_large": 400, "num_inducing_small": 200, "depth": 4}


def records_of(num_trials=5, *, gain=1.0, slowness=1.1):
    def outcome(problem, method, seed):
        is_lts = method.endswith("-lts")
        end = 2.0 + gain * is_lts + 0.1 * ((seed * 7 + len(method)) % 5)
        second = (slowness if is_lts else 1.0) * (1.0 + 0.01 * seed)
        return {"num_evaluations": [100, 200, 300], "best": [-8.0, -1.0, end], "seconds": [second, second]}

    return make_records(FIGURE, outcome, num_trials=num_trials, settings=SETTINGS)


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"slowness": 2.0}, "partly"), ({"gain": 0.0}, "partly"), ({"gain": -1.0}, "not"))

    def records(self, num_trials, **changes):
        return records_of(num_trials, **changes)


def test_labels_have_the_numbers_of_inducing_points():
    (table,) = FIGURE.tables(records_of())
    assert [row[0] for row in table.rows] == ["exact, TS", "exact, LTS", "SVGP 400, PLL, TS", "SVGP 400, PLL, LTS"]


@pytest.mark.parametrize(("num_trials", "words"), [(5, "the range of all trials"), (6, "from order statistics")])
def test_the_kind_of_interval_is_named(num_trials, words):
    records = records_of(num_trials)
    assert words in FIGURE.describe(records)
    assert words in FIGURE.tables(records)[0].caption


def test_times_are_those_of_all_steps():
    (table,) = FIGURE.tables(records_of(1))
    assert table.rows[0][2] == "2 [2, 2]"


def test_sparse_lines_are_judged_where_exact_ones_have_not_run():
    records = records_of()
    sparse = Records(tuple(record for record in records.all if not record.method.startswith("exact")))
    evidence = FIGURE.judge(sparse).evidence
    assert "SVGP, reward of LTS above TS: +1" in evidence
    assert "exact GP, reward of LTS above TS (not run)" in evidence
    assert [row[0] for row in FIGURE.tables(sparse)[0].rows] == ["SVGP 400, PLL, TS", "SVGP 400, PLL, LTS"]
