from paper.figures.fig4b_hotspots import FIGURE
from paper.plots.village_survey import METHODS
from paper.schema.record import Records, UnitRecord
from paper.tests.figure_laws import FigureLaws

NUMBERS = list(range(100, 105))


def survey(curves: dict[str, list[float]], num_trials: int = 3) -> Records:
    """Trials whose accuracies differ by the same shift for all methods."""
    found = []
    for method in METHODS:
        for seed in range(num_trials):
            values = [value + 0.001 * seed for value in curves[method]]
            outcome = {"num_villages": NUMBERS, "accuracy": values}
            outcome |= {"fit_seconds": [1.0] * 5, "choice_seconds": [0.5] * 4, "visited": list(range(104))}
            if seed == 0:
                places = [0.1 * k for k in range(110)]
                outcome["map"] = dict.fromkeys(("longitude", "latitude", "prevalence", "exceedance"), places)
            settings = {"num_initial": 100}
            found.append(UnitRecord("hotspots", "civ", method, seed, "micro", settings, outcome, 1.5, "", {}, ""))
    return Records(tuple(found))


def curves(
    start: tuple[float, float] = (0.80, 0.82), ends: tuple[float, ...] = (0.88, 0.87, 0.85, 0.86, 0.84)
) -> dict[str, list[float]]:
    """Curves of the methods, from a start of the SVGP and one of the forest to an end of each."""
    starts = (start[0], start[0], start[0], start[1], start[1])
    return {
        method: [first, first, 0.5 * (first + last), last, last]
        for method, first, last in zip(METHODS, starts, ends, strict=True)
    }


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (
        ({}, "reproduced"),
        # The forest starts behind.
        ({"start": (0.80, 0.78)}, "partly"),
        # Random choice is better.
        ({"ends": (0.84, 0.87, 0.85, 0.86, 0.83)}, "not"),
    )
    evidence = "over 5 trials"

    def records(self, num_trials, **changes):
        return survey(curves(**changes), num_trials)


def test_the_picture_has_curves_gains_and_maps():
    records = survey(curves())
    accuracy, gains, prevalence, exceedance = FIGURE.draw(records).axes[:4]
    assert len(accuracy.get_legend_handles_labels()[1]) == 5
    assert len(gains.get_legend_handles_labels()[1]) == 3
    assert prevalence.get_title() == "SVGP: predicted prevalence"
    assert len(exceedance.get_legend_handles_labels()[1]) == 2
    assert "after 103 villages: SVGP, hotspot entropy 0.881" in FIGURE.describe(records)


def test_the_tables_show_the_published_numbers_beside_ours():
    records = survey(curves())
    (table,) = FIGURE.tables(records)
    assert table.header[1:4] == ("100 villages", "102 villages", "103 villages")
    assert table.rows[0] == (
        "SVGP, hotspot entropy",
        "0.8010 (0.0025)",
        "0.8410 (0.0025)",
        "0.8810 (0.0025)",
        "1",
        "0.5",
    )
    assert table.rows[-1][3] == "0.8719"
