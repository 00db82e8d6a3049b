import numpy as np
import pytest

from streamgp.streaming.nearness import _median, is_behind, is_near

LENGTHS = np.array([1.0, 0.01])


def test_inputs_in_any_order_are_near_within_twice_their_range():
    draw = np.random.default_rng(0)
    latest = draw.uniform(0.0, 3.0, (64, 2))
    X = np.array([[1.0, 2.0], [-2.5, 5.5], [-3.5, 1.0], [1.0, 6.5]])
    assert is_near(X, latest, LENGTHS).tolist() == [True, True, False, False]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_inputs_that_move_in_one_direction_are_near_the_very_latest(sign):
    draw = np.random.default_rng(0)
    latest = np.stack([sign * np.arange(64.0), draw.uniform(0.0, 3.0, 64)], -1)
    X = np.stack([sign * np.array([10.0, 30.0, 35.0, 60.0, 77.0, 80.0]), np.full(6, 1.0)], -1)
    assert is_near(X, latest, LENGTHS).tolist() == [False, False, True, True, True, False]


def test_values_far_apart_at_the_end_of_a_sorted_table_do_not_make_all_near():
    latest = np.stack([np.append(np.arange(62.0), [200.0, 400.0]), np.full(64, 1.0)], -1)
    X = np.array([[20.0, 1.0], [40.0, 1.0], [410.0, 1.0], [420.0, 1.0]])
    assert is_near(X, latest, LENGTHS).tolist() == [False, True, True, False]


@pytest.mark.parametrize("index", [0, 20, 63])
def test_an_outlier_among_rows_in_any_order_does_not_make_them_move(index):
    draw = np.random.default_rng(0)
    latest = draw.uniform(0.0, 3.0, (64, 2))
    latest[index, 0] = 1000.0
    assert is_near(draw.uniform(0.0, 3.0, (50, 2)), latest, LENGTHS).all()


def test_the_next_row_of_a_random_walk_is_near():
    draw = np.random.default_rng(0)
    walk = draw.normal(size=(2000, 2)).cumsum(0)
    near = [is_near(walk[i : i + 1], walk[i - 64 : i], LENGTHS).item() for i in range(64, 2000)]
    assert np.mean(near) > 0.99


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_inputs_are_behind_where_a_column_that_moves_in_one_direction_was_before(sign):
    draw = np.random.default_rng(0)
    latest = np.stack([sign * np.arange(64.0), draw.uniform(0.0, 3.0, 64)], -1)
    X = np.stack([sign * np.array([-10.0, 30.0, 62.0, 63.0, 64.0, 90.0]), np.array([1.0, 9.0, 1.0, 0.0, 1.0, 0.0])], -1)
    assert is_behind(X, latest).tolist() == [False, True, True, False, False, False]


def test_no_input_is_behind_rows_in_any_order():
    draw = np.random.default_rng(0)
    assert not is_behind(draw.uniform(-9.0, 9.0, (50, 2)), draw.uniform(0.0, 3.0, (64, 2))).any()


@pytest.mark.parametrize("num_steps", [1, 2, 15, 16])
def test_the_usual_step_is_the_median(num_steps):
    steps = np.random.default_rng(num_steps).random((num_steps, 3))
    assert np.array_equal(_median(steps), np.median(steps, 0))
