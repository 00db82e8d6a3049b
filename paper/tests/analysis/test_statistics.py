"""Intervals are those of the t distribution, against SciPy's own tests and simulation."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_rel

from paper.analysis.statistics import (
    MIN_TRIALS_OF_MEDIANS,
    Difference,
    holm,
    jackknife,
    mean_and_error,
    median_and_interval,
    paired_difference,
)


@pytest.mark.parametrize("num_trials", [2, 5, 20])
def test_a_paired_difference_is_scipys_paired_test(num_trials):
    rng = np.random.default_rng(num_trials)
    first, second = rng.normal(0.4, 1.0, num_trials), rng.normal(0.0, 1.0, num_trials)
    found, reference = paired_difference(first, second), ttest_rel(first, second)
    assert math.isclose(found.p_value(), reference.pvalue, rel_tol=1e-9)
    low, high = reference.confidence_interval(0.95)
    assert math.isclose(found.mean - found.error, low, rel_tol=1e-9)
    assert math.isclose(found.mean + found.error, high, rel_tol=1e-9)
    assert math.isclose(found.p_value(0.3), ttest_1samp(first - second, 0.3).pvalue, rel_tol=1e-9)
    assert math.isclose(found.less(0.3).p_value(), found.p_value(0.3), rel_tol=1e-9)


def test_five_trials_cover_the_mean_in_95_of_100_cases():
    rng = np.random.default_rng(0)
    samples = rng.normal(1.0, 2.0, (5, 20_000))
    mean, error = mean_and_error(samples)
    share = float((abs(mean - 1.0) <= error).mean())
    # Two standard errors, by contrast, would cover it in 88 %. The share's own standard error is 0.0015.
    assert abs(share - 0.95) < 0.006


def test_the_detectable_effect_is_detected_in_most_cases():
    rng = np.random.default_rng(1)
    true = 20
    effect = Difference(0.0, 1.0 / math.sqrt(true), true).detectable
    samples = rng.normal(effect, 1.0, (4000, true))
    found = (ttest_1samp(samples, 0.0, axis=1).pvalue < 0.05).mean()
    assert abs(found - 0.8) < 0.03


def test_differences_without_spread_are_certain():
    assert Difference(0.5, 0.0, 5).p_value() == 0.0
    assert Difference(0.5, 0.0, 5).p_value(0.5) == 1.0


def test_one_trial_has_no_error():
    mean, error = mean_and_error([[1.0, 2.0]])
    assert mean.tolist() == [1.0, 2.0]
    assert np.isnan(error).all()
    assert paired_difference([1.0], [0.5]).p_value() == 1.0


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(2).normal(size=9)
    found = jackknife(lambda trials: float(values[trials].mean()), 9)
    reference = paired_difference(values, np.zeros(9))
    assert math.isclose(found.mean, reference.mean, rel_tol=1e-12)
    assert math.isclose(found.standard_error, reference.standard_error, rel_tol=1e-9)
    assert math.isnan(jackknife(lambda trials: 1.0, 2).standard_error)


def test_holms_steps_by_hand():
    # Sorted: 0.01 × 4, 0.02 × 3, 0.03 × 2, 0.04 × 1, none below the one before.
    assert np.allclose(holm([0.04, 0.01, 0.03, 0.02]), [0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


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


@pytest.mark.parametrize("num_trials", range(1, MIN_TRIALS_OF_MEDIANS))
def test_few_trials_give_the_range(num_trials):
    values = np.arange(3.0 * num_trials).reshape(num_trials, 3)
    _, low, high = median_and_interval(values)
    np.testing.assert_array_equal(low, values[0])
    np.testing.assert_array_equal(high, values[-1])
