import os
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
import torch
from distributed import Client

from paper.engine import running
from paper.engine.running import Failure, UnitTask, connect, execute, only_run, run_units
from paper.schema.record import Unit, UnitRecord
from paper.schema.results import load_records
from paper.schema.study import Study
from paper.tests.tiny_study import STUDY, TinySettings
from streamgp.errors import OptionError, StreamGPWarning

SETTINGS = TinySettings(pause=0.0, sizes=(1, 2), label="x")


def task(method: str, seed: int = 0) -> UnitTask:
    return UnitTask(Unit("tiny", "mine", "left", method, seed), STUDY, SETTINGS)


def test_a_unit_becomes_a_record():
    record = execute(task("sum", 7))
    assert isinstance(record, UnitRecord)
    assert record.unit == task("sum", 7).unit
    assert record.settings == {"pause": 0.0, "sizes": [1, 2], "label": "x"}
    assert record.seconds >= 0.0
    assert record.processor_seconds is not None
    assert record.cost == record.processor_seconds >= 0.0
    age = datetime.now(UTC) - datetime.fromisoformat(record.finished)
    assert 0 <= age.total_seconds() < 60


def test_the_seed_is_set_and_the_same_unit_finds_the_same():
    first, again, other = execute(task("sum", 7)), execute(task("sum", 7)), execute(task("sum", 8))
    assert first.outcome == again.outcome != other.outcome
    torch.manual_seed(7)
    assert first.outcome["draws"][0] == round(float(torch.rand(1).sum()), 4)


@pytest.fixture(scope="module")
def client():
    """A cluster of threads in this process."""
    with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as client:
        yield client


def run(client, directory, *tasks) -> list[UnitRecord | Failure]:
    found: list[UnitRecord | Failure] = []
    run_units(tasks, client, directory, tell=found.append)
    return found


def test_each_unit_is_written_before_it_is_told_of(client, tmp_path):
    told = []

    def tell(record):
        told.append(record.unit)
        assert {each.unit for each in load_records("tiny", "mine", tmp_path)[0].all} == set(told)

    tasks = [task("sum", seed) for seed in range(3)]
    run_units(tasks, client, tmp_path, tell=tell)
    assert sorted(map(str, told)) == sorted(str(each.unit) for each in tasks)


def test_an_error_is_a_failure_with_its_last_lines_and_others_go_on(client, tmp_path):
    failure, record = sorted(
        run(client, tmp_path, task("raises", 7), task("sum")), key=lambda each: isinstance(each, UnitRecord)
    )
    assert isinstance(failure, Failure)
    assert failure.unit == task("raises", 7).unit
    assert failure.trace.endswith("ArithmeticError: seed 7 has no square root")
    assert "tiny_study.py" in failure.trace
    assert record.unit == task("sum").unit
    assert load_records("tiny", "mine", tmp_path)[0].all == (record,)


def test_an_outcome_that_is_not_finite_is_a_failure(client, tmp_path):
    (failure,) = run(client, tmp_path, task("nan"))
    assert "Results must be finite numbers" in failure.trace
    assert len(failure.trace.splitlines()) <= 12


def test_a_directory_has_one_run_at_a_time(tmp_path):
    with only_run(tmp_path), pytest.raises(OptionError, match="Another run writes to"), only_run(tmp_path):
        pass
    with only_run(tmp_path):
        pass


def test_a_cluster_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(running, "_CONNECT_SECONDS", 0.2)
    with (
        pytest.raises(OptionError, match=r"No Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"),
        connect("tcp://127.0.0.1:9", 1),
    ):
        pass


@pytest.mark.slow
def test_processes_of_this_machine_run_units_and_one_that_dies_stops_no_other(tmp_path):
    with connect(None, 2) as client:
        found = run(client, tmp_path, task("dies"), *(task("process", seed) for seed in range(4)))
    assert {type(each) for each in found if each.unit.method == "dies"} == {Failure}
    outcomes = [each.outcome for each in found if isinstance(each, UnitRecord)]
    assert len(outcomes) == 4
    assert os.getpid() not in {one["process"] for one in outcomes}
    assert {one["num_threads"] for one in outcomes} == {1}


def test_units_do_not_warn():
    def warn(problem, method, seed, settings):
        warnings.warn("half of it was jitter", StreamGPWarning, stacklevel=1)
        return {}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(
            execute(UnitTask(task("sum").unit, Study("tiny", {}, {}, TinySettings, warn), SETTINGS)), UnitRecord
        )


def test_the_default_type_of_numbers_is_that_of_a_new_process():
    def change(problem, method, seed, settings):
        before = str(torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
        return {"before": before}

    changing = UnitTask(task("sum").unit, Study("tiny", {}, {}, TinySettings, change), SETTINGS)
    try:
        assert [execute(changing).outcome["before"] for _ in range(2)] == ["torch.float32"] * 2
    finally:
        torch.set_default_dtype(torch.float32)


def test_an_interrupt_is_not_a_failure():
    @dataclass(frozen=True)
    class Empty:
        pass

    def interrupt(problem, method, seed, settings):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(UnitTask(task("sum").unit, Study("tiny", {}, {}, Empty, interrupt), Empty()))
