import numpy as np
import pytest
import torch

from streamgp.cli.demo.bookings import expected_bookings, features, make_bookings, play_bookings
from streamgp.testing.tolerances import rounding


def test_a_seed_makes_the_same_counts_again():
    np.testing.assert_array_equal(make_bookings(3, 1), make_bookings(3, 1))
    assert not np.array_equal(make_bookings(3, 1), make_bookings(4, 1))


def test_counts_have_the_expected_rate():
    counts = np.stack([make_bookings(seed, 1) for seed in range(200)])
    rate = expected_bookings(np.arange(168))
    assert (np.abs(counts.mean(0) - rate) < 5 * np.sqrt(rate / 200)).all()


def test_an_hour_and_the_same_hour_a_week_later_differ_in_the_day_only():
    hours = np.arange(168)
    now, later = features(hours), features(hours + 168)
    np.testing.assert_allclose(now[:, :4], later[:, :4], **rounding(torch.float64, condition=100.0))
    np.testing.assert_allclose(later[:, 4] - now[:, 4], 7.0)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*far outside the range")
def test_every_hour_after_the_first_week_is_predicted_once_with_bands_that_hold():
    scene = play_bookings(seed=0, num_weeks=2, track=list)
    seen = scene.counts[168:]
    assert scene.mean.shape == seen.shape
    assert (np.diff(scene.quantiles, axis=-1) >= 0).all()
    inside = (seen >= scene.quantiles[:, 1]) & (seen <= scene.quantiles[:, -2])
    assert inside.mean() > 0.85
    assert np.abs(seen - scene.mean).mean() < np.abs(seen - scene.counts[:-168]).mean()
    assert "336 hours" in scene.sentences()
