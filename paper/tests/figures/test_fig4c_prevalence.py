from paper.figures.fig4c_prevalence import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_of

GOOD = {"svgp-entropy": 0.011, "svgp-response": 0.010, "svgp-random": 0.014}
GOOD |= {"forest-adaptive": 0.016, "forest-random": 0.018}


def outcomes(ends):
    """Three trials whose errors differ by the same shift for all methods."""

    def trial(seed, end):
        error = [value + 0.0001 * seed for value in (0.02, 0.02, 0.015, end, end)]
        numbers = list(range(100, 105))
        return {"num_villages": numbers, "error": error, "fit_seconds": [1.0] * 5, "choice_seconds": [0.5] * 4}

    return {("civ", method): [trial(seed, end) for seed in range(3)] for method, end in ends.items()}


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (
        ({}, "reproduced"),
        # Forests with random choice predict better than the SVGP with it.
        ({"forest-random": 0.012}, "partly"),
        # Random choice is better.
        ({"svgp-entropy": 0.015}, "not"),
    )

    def records(self, num_trials, **changes):
        return records_of(FIGURE, outcomes(GOOD | changes), num_trials=num_trials)


def test_the_description_names_the_errors():
    records = records_of(FIGURE, outcomes(GOOD))
    assert "after 103 villages: SVGP, hotspot entropy 0.0111" in FIGURE.describe(records)


def test_the_table_shows_the_published_errors():
    (table,) = FIGURE.tables(records_of(FIGURE, outcomes(GOOD)))
    assert [row[3] for row in table.rows[-3:]] == ["0.01664", "0.01391", "0.01193"]
