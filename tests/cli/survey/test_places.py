import pytest

from streamgp.cli.survey.columns import SurveyColumns
from streamgp.cli.survey.options import SurveyOptions
from streamgp.cli.survey.places import Measurement, SurveyPlace, read_places
from streamgp.errors import FileFormatError
from streamgp.tables.lines import Position
from streamgp.tables.records import Record

COLUMNS = SurveyColumns(("lng", "lat"), ("rain", "height"), ())
NAMES = ("village", "lng", "lat", "rain", "height", "cases")
GOOD = (("A", "1", "2", "3", "10", "4"), ("B", "2", "2", "5", "20", ""), ("C", "3", "1", "9", "30", ""))
GAPS = (*GOOD, ("D", "4", "4", "", "NA", ""), ("E", "5", "4", "", "40", "2"))
BROKEN = (*GOOD, ("D", "", "4", "1", "2", "1"), ("E", "5", "4", "wet", "40", "-2"))


def read(rows, **given):
    records = [Record(i + 2, Position(), dict(zip(NAMES, row, strict=True))) for i, row in enumerate(rows)]
    options = SurveyOptions(**{"source": "v.csv", "coordinates": ("lng", "lat"), "count": "cases", **given})
    return read_places(records, COLUMNS, options)


def test_rows_become_places():
    places = read(GOOD, identifier="village")
    assert places.places[0] == SurveyPlace(1, "A", (1.0, 2.0, 3.0, 10.0), Measurement(4.0))
    assert places.places[2] == SurveyPlace(3, "C", (3.0, 1.0, 9.0, 30.0), Measurement())
    assert places.notes == ()
    assert [place.name for place in read(GOOD).places] == ["1", "2", "3"]


def test_rows_of_empty_cells_are_passed_over():
    assert read((*GOOD[:2], ("",) * 6, GOOD[2])).places == read(GOOD).places


def test_missing_covariates_are_named_and_remedies_offered():
    with pytest.raises(FileFormatError) as caught:
        read(GAPS)
    assert str(caught.value) == (
        "2 rows cannot be used: row 4 (line 5): the covariate 'rain' is missing, the covariate 'height' is missing; "
        "row 5 (line 6): the covariate 'rain' is missing. Mend the source, fill missing covariates with --impute "
        "median, or leave such rows out with --skip-bad."
    )


def test_missing_covariates_are_filled_with_the_median_on_request():
    places = read(GAPS, imputation="median")
    assert [place.inputs[2:] for place in places.places[3:]] == [(5.0, 25.0), (5.0, 40.0)]
    assert places.notes == (
        "Missing values of 'rain' filled with its median 5: 2.",
        "Missing values of 'height' filled with its median 25: 1.",
    )


def test_bad_rows_are_left_out_on_request():
    places = read(GAPS, is_bad_skipped=True)
    assert places.places == read(GOOD).places
    assert places.notes[0].startswith("Rows left out: 2, row 4 (line 5): the covariate 'rain' is missing")


@pytest.mark.parametrize("imputation", [None, "median"])
def test_what_no_median_mends_is_refused_with_row_and_column(imputation):
    with pytest.raises(FileFormatError) as caught:
        read(BROKEN, imputation=imputation)
    message = str(caught.value)
    assert "row 4 (line 5): the coordinate 'lng' is missing; row 5 (line 6): the covariate 'rain' is 'wet'" in message
    assert "the count 'cases' is -2" in message
    assert "--impute" not in message
    assert read(BROKEN, is_bad_skipped=True, imputation=imputation).places == read(GOOD).places


def test_lines_that_are_no_rows_are_refused():
    options = SurveyOptions(source="v.csv", coordinates=("lng", "lat"), count="cases")
    bad = [Record(2, Position(), None, "it has 2 fields, but the header has 6")]
    with pytest.raises(FileFormatError, match=r"A row cannot be used: row 1 \(line 2\): it has 2 fields"):
        read_places(bad, COLUMNS, options)


def test_a_source_without_places_is_refused():
    with pytest.raises(FileFormatError, match="no places that could be used, and 0 bad rows"):
        read(())
    with pytest.raises(FileFormatError, match="no places that could be used, and 2 bad rows"):
        read(BROKEN[3:], is_bad_skipped=True)


def test_a_covariate_without_values_has_no_median():
    with pytest.raises(FileFormatError, match="covariate 'rain' has no values"):
        read(tuple((*row[:3], "", *row[4:]) for row in GOOD), imputation="median")


def test_weights_and_costs_are_columns_of_numbers():
    places = read(GOOD, weights="height", costs="rain").places
    assert [(place.weight, place.cost) for place in places] == [(10.0, 3.0), (20.0, 5.0), (30.0, 9.0)]
    with pytest.raises(FileFormatError, match="the weight 'cases' is missing"):
        read(GOOD, count=None, target="rain", weights="cases")
    free = (GOOD[0], ("B", "2", "2", "0", "-1", ""))
    with pytest.raises(
        FileFormatError, match="the weight 'height' is -1, but must not be negative, the cost 'rain' is 0"
    ):
        read(free, weights="height", costs="rain")
