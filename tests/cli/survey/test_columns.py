import pytest

from streamgp.cli.survey.columns import choose_survey_columns
from streamgp.cli.survey.options import SurveyOptions
from streamgp.errors import OptionError
from streamgp.tables.lines import Position
from streamgp.tables.records import Record

NAMES = ("village", "lng", "lat", "rain", "region", "height", "cases", "empty", "")
ROWS = (
    ("A", "1", "2", "3.5", "north", "10", "4", "", "0"),
    ("B", "2", "2", "n/a", "7", "tall", "", "", "1"),
    ("C", "3", "1", "2", "south", "30", "2", "NA", "2"),
)
RECORDS = tuple(Record(i + 2, Position(), dict(zip(NAMES, row, strict=True))) for i, row in enumerate(ROWS))


def choose(**given):
    options = SurveyOptions(**{"source": "v.csv", "coordinates": ("lng", "lat"), "count": "cases", **given})
    return choose_survey_columns(NAMES, RECORDS, options)


def test_covariates_are_all_other_columns_of_mostly_numbers():
    columns = choose()
    assert columns.inputs == ("lng", "lat", "rain", "height")
    assert columns.notes == (
        "A column without a name is not used.",
        "The column 'empty' is empty and is not used.",
        "The column 'region' holds text and is not used.",
        "The column 'village' holds text and is not used.",
    )


def test_named_covariates_are_the_only_ones_and_may_be_none():
    assert choose(covariates=("height",)).covariates == ("height",)
    assert choose(covariates=()).inputs == ("lng", "lat")


def test_the_column_of_names_is_no_covariate():
    assert choose(identifier="rain").covariates == ("height",)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"coordinates": ("long", "lat")}, "no column 'long' for --coordinates. Did you mean 'lng'"),
        (
            {"covariates": ("Rain",)},
            "no column 'Rain' for --covariates. Did you mean 'rain'. The columns are 'village', ",
        ),
        ({"identifier": "qqq"}, "no column 'qqq' for --id. The columns are"),
        ({"covariates": ("rain", "cases")}, r"columns \['cases'\] are used twice"),
    ],
)
def test_unknown_and_repeated_columns_are_refused(given, sentence):
    with pytest.raises(OptionError, match=sentence):
        choose(**given)


def test_a_coordinate_with_the_name_of_a_written_column_is_refused():
    options = SurveyOptions(source="v.csv", coordinates=("rank", "lat"), count="cases")
    with pytest.raises(OptionError, match="'rank' has the name of one that is written"):
        choose_survey_columns(("rank", "lat", "cases"), (), options)
