from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamgp import __version__
from streamgp.cli.app import app


def run(*arguments: str):
    # A wide terminal, so that no sentence is broken over lines.
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "400", "NO_COLOR": "1", "TERM": "dumb"})


def test_help_names_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    assert "demo" in result.output
    assert "conditioned on new data" in result.output


def test_version_is_the_one_of_the_package():
    assert run("--version").output.strip() == f"streamgp {__version__}"


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("absent/demo.png", "absent' does not exist. Create it, or choose another place."),
        ("", "is a directory. Add a file name"),
        ("demo.xyz", "'demo.xyz' must end in the name of a picture format:"),
        ("demo", "'demo' must end in the name of a picture format:"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path, output, sentence):
    result = run("demo", "--output", str(tmp_path / output))
    assert result.exit_code == 2
    assert sentence in result.output
    assert list(tmp_path.iterdir()) == []
