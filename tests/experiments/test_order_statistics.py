"""Intervals of medians have the ranks of the binomial distribution."""

import numpy as np
import pytest

from streamgp.experiments.order_statistics import MIN_TRIALS, median_and_interval


# Ranks of 95 % intervals of the median, as tables of nonparametric statistics have them.
@pytest.mark.parametrize(("num_trials", "rank"), [(6, 1), (8, 1), (9, 2), (10, 2), (15, 4), (20, 6), (24, 7), (50, 18)])
def test_ranks_are_those_of_published_tables(num_trials, rank):
    values = np.random.default_rng(0).permutation(num_trials) + 1.0
    median, low, high = median_and_interval(values)
    assert (low, high) == (rank, num_trials + 1 - rank)
    assert median == (num_trials + 1) / 2


@pytest.mark.parametrize("num_trials", [6, 9, 17, 24])
def test_the_interval_covers_the_median_as_often_as_it_says(num_trials):
    draws = np.random.default_rng(1).exponential(size=(num_trials, 20_000))
    _, low, high = median_and_interval(draws)
    covered = np.mean((low <= np.log(2.0)) & (np.log(2.0) <= high))
    # Three standard errors of 20 000 draws; ranks are whole numbers, so that the probability may be higher.
    assert covered > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 20_000)


@pytest.mark.parametrize("num_trials", range(1, MIN_TRIALS))
def test_few_trials_give_the_range(num_trials):
    values = np.arange(3.0 * num_trials).reshape(num_trials, 3)
    _, low, high = median_and_interval(values)
    np.testing.assert_array_equal(low, values[0])
    np.testing.assert_array_equal(high, values[-1])
