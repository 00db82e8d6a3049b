import pytest
import torch

from streamgp.cli.survey.options import SurveyOptions
from streamgp.cli.survey.places import Measurement, SurveyPlace
from streamgp.cli.survey.pool import make_pool
from streamgp.cli.survey.tables import all_table, next_table, printed_table
from streamgp.pools import ResponsePrediction

PLACES = (
    SurveyPlace(1, "A", (1.0, -2.5, 7.0), Measurement(1.0, 4.0)),
    SurveyPlace(2, "B", (3.0, 2.0, 7.0)),
    SurveyPlace(3, "A again", (1.0, -2.5, 7.0)),
    SurveyPlace(4, "C", (4.0, 2.0, 7.0)),
)
POOL = make_pool(PLACES, "prevalence")
CHOSEN = torch.tensor([2, 1])


def options(**given):
    return SurveyOptions(source="v.csv", coordinates=("lng", "lat"), positives="k", tested="n", **given)


@pytest.fixture
def prediction():
    mean = torch.tensor([0.25, 0.123456, 0.5], dtype=torch.float64)
    return ResponsePrediction(mean, mean, mean - 0.1, mean + 0.1, mean, mean, None)


def test_chosen_places_come_by_rank(prediction):
    table = next_table(PLACES, POOL, prediction, chosen=CHOSEN, options=options(identifier="village"))
    assert table.header == ("rank", "village", "lng", "lat", "predicted", "lower", "upper")
    assert table.rows == (
        ("1", "C", "4.0", "2.0", "0.5", "0.4", "0.6"),
        ("2", "B", "3.0", "2.0", "0.1235", "0.02346", "0.2235"),
    )


def test_without_a_prediction_its_cells_are_empty():
    table = next_table(PLACES, POOL, None, chosen=CHOSEN, options=options(threshold=0.1))
    assert table.header == ("rank", "row", "lng", "lat", "predicted", "lower", "upper", "probability_above")
    assert table.rows[0] == ("1", "C", "4.0", "2.0", "", "", "", "")


def test_all_rows_are_predicted_and_equal_places_alike(prediction):
    table = all_table(PLACES, POOL, prediction, options=options())
    assert table.header == ("row", "lng", "lat", "surveyed", "predicted", "lower", "upper")
    assert [row[3] for row in table.rows] == ["yes", "no", "yes", "no"]
    assert table.rows[0][1:] == table.rows[2][1:]
    assert [row[4] for row in table.rows] == ["0.25", "0.1235", "0.25", "0.5"]


def test_the_printed_table_has_fewer_digits(prediction):
    table = next_table(PLACES, POOL, prediction, chosen=CHOSEN, options=options())
    printed = printed_table(table, options())
    assert printed.header == ("rank", "row", "lng", "lat", "prevalence", "95 % interval")
    assert printed.rows[1] == ("2", "B", "3", "2", "0.12", "0.023 to 0.22")
    empty = next_table(PLACES, POOL, None, chosen=CHOSEN, options=options(threshold=0.1))
    printed = printed_table(empty, options(threshold=0.1))
    assert printed.header[-1] == "above 0.1"
    assert printed.rows[0] == ("1", "C", "4", "2", "", "", "")
