import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamgp.cli.app import app


def run_demo(output: Path, *arguments: str) -> str:
    """Run the short version of the command, and return what it printed but for times and names of files."""
    command = ["demo", "--quick", "--output", str(output), *arguments]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "400", "NO_COLOR": "1", "TERM": "dumb"})
    assert result.exit_code == 0, result.output
    assert f"Picture: {output}" in result.output
    sentences = result.output.split("100%")[-1]
    return re.sub(r"took \d+ s|Picture: .*", "", sentences[sentences.index("\n") :])


@pytest.mark.slow
def test_the_demo_says_what_happened_and_writes_a_picture(tmp_path, monkeypatch):
    # The fewest with a band; all nine quantiles of a week of counts take seven seconds.
    monkeypatch.setattr("streamgp.cli.demo.bookings._LEVELS", (0.025, 0.05, 0.95, 0.975))
    picture = tmp_path / "demo.png"
    text = run_demo(picture, "--seed", "1")
    for title in ("Condition on new data", "Learn a stream of counts", "Learn a stream of classes", "Decide"):
        assert title in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [picture]
