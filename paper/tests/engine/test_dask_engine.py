import os
import signal
import sys

import pytest

from paper.engine.dask_engine import DaskEngine
from paper.engine.execution import UnitTask, execute
from paper.engine.results import append_record, load_records
from paper.schema.record import UnitRecord
from paper.schema.unit import Unit
from paper.tests.tiny_study import STUDY, TinySettings
from streamgp.errors import OptionError, UnsupportedError

SETTINGS = TinySettings(pause=0.2, sizes=(1, 2), label="dask")
TASKS = [
    UnitTask(Unit("tiny", "mine", problem, method, seed), STUDY, SETTINGS)
    for seed in range(3)
    for problem, method in (("left", "sum"), ("right", "sum"), ("left", "raises"))
]


@pytest.mark.slow
@pytest.mark.thorough
def test_a_worker_that_is_killed_costs_no_unit(tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra streamgp[dask]")
    failed = []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        engine = DaskEngine(cluster.scheduler_address)
        assert engine.num_workers == 2
        victim = next(iter(cluster.workers.values())).pid
        for number, result in enumerate(engine.run(TASKS, announce=lambda unit: None)):
            if number == 1:
                os.kill(victim, signal.SIGKILL)
            if isinstance(result, UnitRecord):
                append_record(result, tmp_path)
            else:
                failed.append(result.unit)
    records, issues = load_records("tiny", "mine", tmp_path)
    assert issues == ()  # none came twice
    expected = [execute(task) for task in TASKS]
    assert {Unit.of(record): record.outcome for record in records.all} == {
        Unit.of(record): record.outcome for record in expected if isinstance(record, UnitRecord)
    }
    assert set(failed) == {task.unit for task in TASKS if task.unit.method == "raises"}
    assert len(failed) == 3


def test_an_address_without_a_scheduler_is_refused(monkeypatch):
    pytest.importorskip("distributed", reason="needs the extra streamgp[dask]")
    monkeypatch.setattr("paper.engine.dask_engine._CONNECT_SECONDS", 0.5)
    with pytest.raises(OptionError, match=r"No Dask scheduler answers at 'tcp://127\.0\.0\.1:9' .* with --dask"):
        DaskEngine("tcp://127.0.0.1:9")


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnsupportedError, match=r"Install it with: pip install 'streamgp\[dask\]'"):
        DaskEngine("tcp://127.0.0.1:9")
