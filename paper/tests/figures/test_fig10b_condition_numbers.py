"""Fig. 10 b on made records."""

import pytest

from paper.figures.fig10b_condition_numbers import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import make_records
from streamgp.testing.tolerances import approximation, within

AS_CLAIMED = {"exact": 8.0, "exact-shared": 7.0, "pseudo-data": 4.0, "pseudo-data-jittered": 3.5, "conditioned": 1.0}


def records_of(ends, num_trials=5):
    def outcome(problem, method, seed):
        end = ends[method] + 0.1 * ((seed * 7 + len(method)) % 5)
        table = {"log10_condition": [[0.0, 1.0, end], [0.0, 1.0, end + 0.2]]}
        return table | ({"log10_inducing": 4.0} if method == "conditioned" else {})

    return make_records(FIGURE, outcome, num_trials=num_trials)


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"exact-shared": 3.5}, "partly"), ({"exact": 3.5}, "not"))

    def records(self, num_trials, **changes):
        return records_of(AS_CLAIMED | changes, num_trials)


def test_parts_of_the_difference_add_up_to_it():
    _, shares = FIGURE.tables(records_of(dict.fromkeys(AS_CLAIMED, 2.0) | {"exact": 8.0, "exact-shared": 3.0}, 5))
    gains = [float(row[1].split()[0]) for row in shares.rows]
    assert sum(gains[:3]) == pytest.approx(gains[3], **within(approximation(0.02, "printed") | {"rtol": 0.0}))
    percents = [float(row[2].removesuffix(" %")) for row in shares.rows[:4]]
    assert sum(percents[:3]) == pytest.approx(percents[3], **within(approximation(2.0, "printed") | {"rtol": 0.0}))
    assert percents[0] > 75.0


def test_a_trial_is_the_mean_over_its_paths():
    table, _ = FIGURE.tables(records_of(AS_CLAIMED, 1))
    offset = 0.1 * (len("exact") % 5)
    assert table.rows[0][2].startswith(f"{8.0 + offset + 0.1:.2f}")
    assert table.header == ("matrix", "depth 0", "depth 2")
