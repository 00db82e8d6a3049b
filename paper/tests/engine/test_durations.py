import pytest

from paper.engine.durations import show_duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "under 1 s"),
        (40.0, "40 s"),
        (720.0, "12 min"),
        (3 * 3600.0, "3 h"),
        (12_600.0, "3.5 h"),
        (4 * 86_400.0, "4 days"),
    ],
)
def test_times_are_said_as_people_do(seconds, words):
    assert show_duration(seconds) == words
