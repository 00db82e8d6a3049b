import pytest

import streamgp as sg
from streamgp.errors import OptionError, ValueRangeError
from streamgp.streaming.budget import RowCost, measure_row, most_within


def squares(p: int) -> RowCost:
    """A row of one millisecond and more with the square of the points, and memory likewise."""
    return RowCost(1.0 + (p / 100.0) ** 2, 2.0 * (p / 100.0) ** 2)


def test_the_smaller_of_both_budgets_counts():
    nothing = float("inf")
    assert most_within(RowCost(10.0, nothing), squares) == 300
    assert most_within(RowCost(nothing, 2.0 * 1.5**2), squares) == 150
    assert most_within(RowCost(10.0, 2.0 * 1.5**2), squares) == 150
    assert most_within(RowCost(nothing, nothing), squares) == 800


def test_points_that_cost_the_whole_budget_are_within_it():
    assert most_within(squares(100), squares) == 100


def test_a_budget_that_nothing_fits_is_refused():
    with pytest.raises(ValueRangeError, match=r"with 25 inducing points a row takes 1\.1 ms here"):
        most_within(RowCost(1.0, 1.0), squares)
    with pytest.raises(ValueRangeError, match="milliseconds must be"):
        sg.points_within(num_columns=2, milliseconds=-1.0)
    with pytest.raises(OptionError, match="Pass milliseconds for a row, megabytes in all, or both"):
        sg.points_within(num_columns=2)


@pytest.mark.slow
def test_memory_grows_with_points_and_what_is_found_fits():
    small, large = measure_row(25, num_columns=2), measure_row(50, num_columns=2)
    assert small.megabytes < large.megabytes
    assert small.milliseconds > 0.0
    most = sg.points_within(num_columns=2, megabytes=0.5 * (small.megabytes + large.megabytes))
    assert 25 < most < 50
    assert measure_row(most, num_columns=2).megabytes < large.megabytes
