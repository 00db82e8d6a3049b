import math

import pytest
import torch

from streamgp.cli.survey.places import Measurement, SurveyPlace
from streamgp.cli.survey.pool import make_pool
from streamgp.testing.tolerances import tolerance

HERE, THERE, ABOVE = (1.0, 2.0, 5.0), (3.0, 2.0, 5.0), (1.0, 2.0, 6.0)


def places(*pairs):
    return [SurveyPlace(row, str(row), inputs, outcome) for row, (inputs, outcome) in enumerate(pairs, start=1)]


def test_places_of_different_inputs_stay_apart():
    pool = make_pool(
        places((HERE, Measurement(1.0, 4.0)), (THERE, Measurement()), (ABOVE, Measurement(2.0, 5.0))), "prevalence"
    )
    assert pool.inputs.tolist() == [list(HERE), list(THERE), list(ABOVE)]
    assert pool.member.tolist() == pool.first.tolist() == [0, 1, 2]
    assert pool.is_surveyed.tolist() == [True, False, True]
    assert pool.notes == ("Places with the coordinates of others but other covariates stay apart: 1.",)


def test_positives_and_tests_of_equal_places_are_added():
    rows = places(
        (HERE, Measurement(1.0, 4.0)), (THERE, Measurement()), (HERE, Measurement(2.0, 5.0)), (HERE, Measurement())
    )
    pool = make_pool(rows, "prevalence")
    assert pool.y[0] == 3
    assert pool.constants[0] == 9
    assert pool.member.tolist() == [0, 1, 0, 0]
    assert pool.first.tolist() == [0, 1]
    assert pool.notes == (
        "Rows with the coordinates and covariates of others are one place with them: row 3 as 1, 4 as 1. What was "
        "measured there is added.",
    )


def test_counts_of_equal_places_are_added_with_their_number():
    pool = make_pool(places((HERE, Measurement(7.0)), (HERE, Measurement(2.0)), (THERE, Measurement(4.0))), "rate")
    assert pool.y.tolist() == [9.0, 4.0]
    assert pool.constants.tolist() == [2.0, 1.0]


def test_values_of_equal_places_are_averaged():
    pool = make_pool(places((HERE, Measurement(7.0)), (HERE, Measurement(2.0)), (THERE, Measurement())), "value")
    assert pool.y[0] == 4.5
    assert pool.constants.isnan().all()
    assert "is averaged" in pool.notes[0]


@pytest.mark.parametrize("variances", [(1.0, 4.0), (0.3, 0.3)])
def test_values_of_known_noise_are_merged_as_a_product_of_densities(variances):
    rows = places(*((HERE, Measurement(y, v)) for y, v in zip((7.0, 2.0), variances, strict=True)))
    pool = make_pool(rows, "value")
    f = torch.linspace(-5.0, 15.0, 7, dtype=torch.float64)
    apart = sum(-0.5 * (f - y).square() / v for y, v in zip((7.0, 2.0), variances, strict=True))
    merged = -0.5 * (f - pool.y).square() / pool.constants
    torch.testing.assert_close(apart - apart[0], merged - merged[0], **tolerance(torch.float64))


def test_noise_of_places_that_have_not_been_surveyed_is_kept():
    pool = make_pool(
        places((HERE, Measurement(None, 4.0)), (HERE, Measurement()), (THERE, Measurement(1.0, 2.0))), "value"
    )
    assert math.isnan(float(pool.y[0]))
    assert pool.constants.tolist() == [4.0, 2.0]


def test_rows_with_nobody_tested_are_reported():
    pool = make_pool(places((HERE, Measurement(is_empty_survey=True)), (THERE, Measurement(1.0, 2.0))), "prevalence")
    assert pool.is_surveyed.tolist() == [False, True]
    assert pool.notes == ("Rows with nobody tested count as not surveyed: 1.",)


def test_people_of_equal_places_are_added_and_the_shortest_way_is_taken():
    rows = [
        SurveyPlace(1, "1", HERE, weight=10.0, cost=4.0),
        SurveyPlace(2, "2", THERE),
        SurveyPlace(3, "3", HERE, weight=5.0, cost=3.0),
    ]
    pool = make_pool(rows, "prevalence")
    assert pool.weights.tolist() == [15.0, 1.0]
    assert pool.costs.tolist() == [3.0, 1.0]
