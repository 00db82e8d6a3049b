import os
import time
from dataclasses import replace

import pytest

from paper.engine.execution import Failure, UnitTask, execute
from paper.engine.local_engine import JoblibEngine
from paper.schema.record import UnitRecord
from paper.schema.unit import Unit
from paper.tests.tiny_study import STUDY, TinySettings

SETTINGS = TinySettings(pause=0.0, sizes=(1, 2), label="x")
TASKS = [
    UnitTask(Unit("tiny", "mine", "left", method, seed), STUDY, SETTINGS) for seed in (0, 1) for method in STUDY.methods
]


@pytest.mark.slow
def test_every_unit_ends_once_whatever_becomes_of_the_others():
    started = []
    results = list(JoblibEngine(2).run(TASKS, announce=started.append))
    units = [Unit.of(result) if isinstance(result, UnitRecord) else result.unit for result in results]
    assert started == [task.unit for task in TASKS]
    assert sorted(map(str, units)) == sorted(str(task.unit) for task in TASKS)

    found = dict(zip(units, results, strict=True))
    for task in TASKS:
        result = found[task.unit]
        if task.unit.method == "sum":
            assert result.outcome == execute(task).outcome
        elif task.unit.method == "dies":
            assert result == Failure(task.unit, "Its process ended with code -9, without a result.")
        elif task.unit.method in ("raises", "nan"):
            assert isinstance(result, Failure)
            assert result.reason == execute(task).reason

    places = [result.outcome for unit, result in found.items() if unit.method == "process"]
    processes = {place["process"] for place in places}
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert all(place["num_threads"] == 1 for place in places)


@pytest.mark.slow
def test_with_one_job_units_run_one_after_the_other():
    events = []
    settings = replace(SETTINGS, pause=0.2)
    tasks = [UnitTask(Unit("tiny", "mine", "left", "process", seed), STUDY, settings) for seed in range(3)]
    began = time.monotonic()
    for record in JoblibEngine(1).run(tasks, announce=events.append):
        events.append(Unit.of(record))
        assert record.outcome["process"] != os.getpid()
    # The next one may start before what became of the last one is looked at.
    assert sorted(events, key=str) == sorted((task.unit for task in tasks for _ in ("start", "end")), key=str)
    assert list(dict.fromkeys(events)) == [task.unit for task in tasks]
    assert time.monotonic() - began >= 3 * 0.2
