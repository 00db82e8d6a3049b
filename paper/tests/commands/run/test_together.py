"""Several real `python -m paper run` on one directory share the units."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paper.engine.results import load_records, results_file

SCRIPT = Path(__file__).with_name("run_tiny_study.py")
# The paper is not installed; a process of its own finds it beside the tests.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[4])}
ARGUMENTS = ["run", "tiny", "--config", "mine.toml", "--methods", "sum", "--jobs", "1"]
TEXT = """
[mine]
num_trials = 6
seconds_per_unit = 1
[mine.settings]
pause = 0.3
sizes = [1, 2]
label = "x"
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_three_runs_do_every_unit_once(tmp_path):
    (tmp_path / "mine.toml").write_text(TEXT)
    runs = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), *ARGUMENTS], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = [run.communicate(timeout=180)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], said
    records, issues = load_records("tiny", "mine", tmp_path / "paper" / "results")
    assert issues == ()
    assert len(records.all) == 12
    assert results_file("tiny", "mine", tmp_path / "paper" / "results").read_bytes().count(b"\n") == 12
    # At least one came late enough to leave units to the others.
    assert any("were left to other runs on this directory" in text for text in said) or any(
        "nothing is left to do" in text for text in said
    )
