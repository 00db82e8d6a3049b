"""A unit belongs to one process at a time, and to nobody when that one is gone."""

import subprocess
import sys
import textwrap

import pytest

from paper.engine.execution import UnitTask, execute
from paper.engine.results import append_record
from paper.engine.unit_locks import UnitLocks, claim_units
from paper.schema.unit import Unit
from paper.tests.tiny_study import STUDY, TinySettings

SETTINGS = TinySettings(pause=0.0, sizes=(1, 2), label="x")
TASKS = [UnitTask(Unit("tiny", "mine", "left", "sum", seed), STUDY, SETTINGS) for seed in range(3)]
HOLD = """
import sys, time
from pathlib import Path
from paper.schema.unit import Unit
from paper.engine.unit_locks import UnitLocks
locks = UnitLocks(Path(sys.argv[1]))
print(locks.claim(Unit("tiny", "mine", "left", "sum", 1)), flush=True)
time.sleep(60)
"""


def test_a_unit_is_claimed_once(tmp_path):
    with UnitLocks(tmp_path) as first, UnitLocks(tmp_path) as second:
        assert first.claim(TASKS[0].unit)
        assert not second.claim(TASKS[0].unit)
        assert second.claim(TASKS[1].unit)
        first.release(TASKS[0].unit)
        assert second.claim(TASKS[0].unit)
    assert not list((tmp_path / "mine" / ".locks").iterdir())


@pytest.mark.slow
def test_the_claim_of_a_killed_process_is_taken_over(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", textwrap.dedent(HOLD), str(tmp_path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"True\n"
    skipped = []
    with UnitLocks(tmp_path) as locks:
        free = list(claim_units(TASKS, tmp_path, locks=locks, skip=skipped.append))
        assert [task.unit.seed for task in free] == [0, 2]
        assert [unit.seed for unit in skipped] == [1]
        holder.kill()
        holder.wait()
        assert locks.claim(TASKS[1].unit)


def test_units_that_have_run_since_the_plan_are_skipped(tmp_path):
    append_record(execute(TASKS[1]), tmp_path)
    skipped = []
    with UnitLocks(tmp_path) as locks:
        free = [task.unit.seed for task in claim_units(TASKS, tmp_path, locks=locks, skip=skipped.append)]
    assert free == [0, 2]
    assert skipped == [TASKS[1].unit]
