from paper.figures.fig4a_malaria import FIGURE
from paper.schema.record import Records, UnitRecord
from paper.tests.figure_laws import FigureLaws

NUMBERS = [10, 16, 22, 28]


def survey(ends: dict[str, float], num_trials: int = 3) -> Records:
    """Results whose last errors are known, up to a spread that all methods share."""
    found = []
    for method in FIGURE.methods:
        for seed in range(num_trials):
            rmse = [0.2, 0.15, 0.12, ends.get(method, 0.1) + 0.01 * seed]
            outcome = {"num_points": NUMBERS, "rmse": rmse}
            if seed == 0:
                outcome["chosen"] = [[5.0 + 0.1 * k, 9.0 + 0.05 * k] for k in range(28)]
                outcome["map"] = {
                    "longitude": [5.0, 6.0, 7.0],
                    "latitude": [9.0, 10.0, 9.5],
                    "mean": [0.2, 0.3, 0.1],
                    "deviation": [0.02, 0.03, 0.01],
                }
            settings = {"num_initial": 10}
            found.append(UnitRecord("malaria", "nigeria", method, seed, "micro", settings, outcome, 1.5, "", {}, ""))
    return Records(tuple(found))


CLEAR = {"svgp-nipv": 0.05, "exact-nipv": 0.06, "wiski-nipv": 0.07}


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (
        ({}, "reproduced"),
        # The exact GP is the best.
        ({"exact-nipv": 0.03}, "partly"),
        # Random choice beats the SVGP's own.
        ({"svgp-nipv": 0.2}, "not"),
    )
    evidence = "over 5 trials"

    def records(self, num_trials, **changes):
        return survey(CLEAR | changes, num_trials)


def test_the_picture_has_curves_and_maps_and_is_described():
    records = survey(CLEAR)
    picture = FIGURE.draw(records)
    errors, gains, mean, deviation = picture.axes[:4]
    assert len(errors.get_legend_handles_labels()[1]) == 6
    assert len(gains.get_legend_handles_labels()[1]) == 3
    assert mean.get_title() == "SVGP: predicted rate"
    assert len(deviation.get_legend_handles_labels()[1]) == 2
    assert "after 28 pixels: SVGP, integrated variance 0.06" in FIGURE.describe(records)


def test_without_the_first_seed_there_is_no_map():
    records = Records(tuple(record for record in survey(CLEAR).all if record.seed > 0))
    assert not FIGURE.draw(records).axes[2].axison


def test_the_table_has_a_row_for_each_method():
    (table,) = FIGURE.tables(survey(CLEAR))
    assert [row[0] for row in table.rows][:2] == ["SVGP, integrated variance", "SVGP, random"]
    assert table.header == ("method", "16 pixels", "22 pixels", "28 pixels", "seconds", "trials")
    assert table.rows[0][3] == "0.0600 (0.0248)"
