"""A real `python -m paper run` that is killed, and run again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paper.commands.app import app
from paper.engine.running import UnitTask, execute
from paper.schema.configuration import read_own_configuration
from paper.schema.record import Unit
from paper.schema.results import load_records, results_file
from paper.tests.tiny_figure import tiny_registry
from paper.tests.tiny_study import STUDY

SCRIPT = Path(__file__).with_name("run_tiny_study.py")
# The paper is not installed; a process of its own finds it beside the tests.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
ARGUMENTS = ["run", "tiny", "--config", "mine.toml", "--methods", "sum", "--jobs", "2"]
TEXT = """
[mine]
num_trials = 4
seconds_per_unit = 1
[mine.settings]
pause = 0.4
sizes = [1, 2]
label = "x"
"""


def num_lines(directory: Path) -> int:
    path = results_file("tiny", "mine", directory / "paper" / "results")
    return path.read_bytes().count(b"\n") if path.exists() else 0


def units_of(session: int) -> list[int]:
    """Processes of a session whose parents are in it too, as those of units are when the run itself is gone."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, _, owner = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it ended meanwhile
        if int(owner) == session and state != "Z":
            parents[int(path.parent.name)] = int(parent)
    return [process for process, parent in parents.items() if parent in parents]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="looks through /proc")
def test_a_killed_run_goes_on_to_the_same_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(TEXT)
    # A session of its own has no terminal, and can be looked through afterwards.
    run = subprocess.Popen([sys.executable, str(SCRIPT), *ARGUMENTS], start_new_session=True, env=ENVIRONMENT)
    deadline = time.monotonic() + 120
    while num_lines(tmp_path) < 2:
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    num_kept = num_lines(tmp_path)
    assert 2 <= num_kept < 8

    with tiny_registry():
        again = CliRunner().invoke(app, ARGUMENTS)
    assert again.exit_code == 0
    assert f"{8 - num_kept} of 8 units to run" in again.output
    records, issues = load_records("tiny", "mine", tmp_path / "paper" / "results")
    assert issues == ()
    assert num_lines(tmp_path) == 8  # what had ended was not run again

    configuration = read_own_configuration(STUDY, tmp_path / "mine.toml")
    units = [Unit("tiny", "mine", problem, "sum", seed) for problem in STUDY.problems for seed in range(4)]
    undisturbed = [execute(UnitTask(unit, STUDY, configuration.settings)) for unit in units]
    assert {record.unit: record.outcome for record in records.all} == {
        record.unit: record.outcome for record in undisturbed
    }
    assert units_of(run.pid) == []  # nobody waits for them
