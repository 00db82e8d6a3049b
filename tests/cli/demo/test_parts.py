import numpy as np
import pytest

from streamgp.cli.demo.parts import make_parts, play_parts, running_mean


def test_a_seed_makes_the_same_parts_again():
    first, second, other = make_parts(3, 50), make_parts(3, 50), make_parts(4, 50)
    np.testing.assert_array_equal(first.inputs, second.inputs)
    np.testing.assert_array_equal(first.is_passed, second.is_passed)
    assert not np.array_equal(first.inputs, other.inputs)


def test_parts_pass_with_their_probability():
    parts = make_parts(0, 20_000)
    for low, high in ((0.0, 0.2), (0.2, 0.8), (0.8, 1.0)):
        within = (parts.probability >= low) & (parts.probability <= high)
        expected = parts.probability[within].mean()
        assert parts.is_passed[within].mean() == pytest.approx(expected, abs=4 / np.sqrt(within.sum()))


def test_good_settings_move_to_higher_temperatures_and_pressures():
    parts = make_parts(0, 10_000)
    early, late = (parts.inputs[part][parts.is_passed[part]].mean(0) for part in (slice(3000), slice(-1000, None)))
    assert (late > early).all()


def test_running_means_are_means_of_windows():
    values = np.random.default_rng(0).random(30)
    expected = [values[start : start + 7].mean() for start in range(24)]
    np.testing.assert_allclose(running_mean(values, 7), expected)
    np.testing.assert_allclose(running_mean(values, 100), [values.mean()])


@pytest.mark.slow
@pytest.mark.thorough
def test_every_part_after_the_first_is_predicted_once_and_better_than_by_chance():
    scene = play_parts(seed=0, num_parts=160, track=list)
    assert scene.first == 16
    assert len(scene.is_right) == len(scene.is_right_remembering) == 144
    share = max(scene.parts.is_passed.mean(), 1 - scene.parts.is_passed.mean())
    assert scene.is_right[50:].mean() > share + 0.1
    assert 0.0 <= scene.surface.min() < 0.2 < 0.8 < scene.surface.max() <= 1.0
    assert "160 parts" in scene.sentences()
