"""The demonstration: each scene in short, its words and its picture."""

import re

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from streamgp.cli.app import app
from streamgp.cli.demo import bookings, conditioning, parts, tuning

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::streamgp.errors.StreamGPWarning")]


def numbers(scene):
    scene.draw(*Figure().subplots(1, 2))
    return [float(number) for number in re.findall(r"\d+\.?\d*", scene.sentences)]


def test_the_sparse_gp_stays_close_to_the_exact_one_through_conditioning():
    assert max(numbers(conditioning(1, list))[-2:]) < 0.05


@pytest.mark.thorough
def test_tries_end_near_the_best_settings():
    found, possible, at_random = numbers(tuning(0, list, num_tries=10))[3:6]
    assert at_random - 3 < found <= possible


@pytest.mark.thorough
def test_counts_are_predicted_better_than_by_those_of_a_week_before():
    hours, inside, _, error, week_before = numbers(bookings(0, list, num_weeks=2))
    assert hours == 336
    assert inside > 85
    assert error < week_before


@pytest.mark.thorough
def test_parts_are_predicted_about_as_well_as_one_can():
    scene = parts(0, list, num_parts=300)
    by_default, _, best = numbers(scene)[1:]
    assert best - 12 < by_default


def test_the_demo_says_what_happened_and_writes_a_picture(tmp_path):
    picture = tmp_path / "demo.png"
    command = ["demo", "--quick", "--seed", "1", "--output", str(picture)]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "400", "NO_COLOR": "1", "TERM": "dumb"})
    assert result.exit_code == 0, result.output
    for title in ("Condition on new data", "Learn a stream of counts", "Learn a stream of classes", "Decide"):
        assert title in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [picture]
