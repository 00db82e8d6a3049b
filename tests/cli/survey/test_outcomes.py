import pytest

from streamgp.cli.survey.options import SurveyOptions
from streamgp.cli.survey.places import NOTHING, Measurement, read_outcome

TESTS = {"positives": "k", "tested": "n"}
NOISY = {"target": "y", "noise": "s"}


def read(columns, **fields):
    return read_outcome(fields, SurveyOptions(source="v.csv", coordinates=("lng", "lat"), **columns))


@pytest.mark.parametrize(
    ("columns", "fields", "outcome"),
    [
        (TESTS, {"k": "3", "n": "40"}, Measurement(3.0, 40.0)),
        (TESTS, {"k": "", "n": ""}, NOTHING),
        (TESTS, {"k": "NA", "n": None}, NOTHING),
        (TESTS, {"k": "0", "n": "0"}, Measurement(is_empty_survey=True)),
        (TESTS, {"k": "", "n": "0"}, Measurement(is_empty_survey=True)),
        ({"count": "c"}, {"c": "7"}, Measurement(7.0)),
        ({"count": "c"}, {"c": ""}, NOTHING),
        ({"target": "y"}, {"y": "-1.5"}, Measurement(-1.5)),
        (NOISY, {"y": "2", "s": "0.5"}, Measurement(2.0, 0.25)),
        (NOISY, {"y": "", "s": "3"}, Measurement(None, 9.0)),
        (NOISY, {"y": "", "s": ""}, NOTHING),
    ],
)
def test_outcomes_are_read_from_their_columns(columns, fields, outcome):
    assert read(columns, **fields) == outcome


@pytest.mark.parametrize(
    ("columns", "fields", "sentence"),
    [
        (TESTS, {"k": "5", "n": "4"}, "'k' is 5, more than 'n', which is 4"),
        (TESTS, {"k": "5", "n": "0"}, "'k' is 5, more than 'n', which is 0"),
        (TESTS, {"k": "-1", "n": "4"}, "the count 'k' is -1, but must be a whole number that is not negative"),
        (TESTS, {"k": "1", "n": "4.5"}, "the count 'n' is 4.5, but must be a whole number that is not negative"),
        (TESTS, {"k": "1", "n": ""}, "'n' is missing where 'k' is not"),
        (TESTS, {"k": "", "n": "4"}, "'k' is missing where 'n' is not"),
        (TESTS, {"k": "few", "n": "4"}, "the count 'k' is 'few' and not a number"),
        ({"count": "c"}, {"c": "inf"}, "the count 'c' is not finite"),
        ({"target": "y"}, {"y": "high"}, "the target 'y' is 'high' and not a number"),
        (NOISY, {"y": "1", "s": ""}, "the noise 's' is missing where 'y' is not"),
        (NOISY, {"y": "1", "s": "0"}, "the noise 's' is 0, but a standard deviation must be positive"),
        (NOISY, {"y": "1", "s": "x"}, "the noise 's' is 'x' and not a number"),
    ],
)
def test_what_cannot_have_been_measured_is_said(columns, fields, sentence):
    assert read(columns, **fields) == sentence
