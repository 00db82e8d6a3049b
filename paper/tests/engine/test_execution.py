import warnings
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
import torch

from paper.engine.execution import Failure, UnitTask, execute
from paper.schema.record import UnitRecord
from paper.schema.study import Study
from paper.schema.unit import Unit
from paper.tests.tiny_study import STUDY, TinySettings
from streamgp.errors import StreamGPWarning

SETTINGS = TinySettings(pause=0.0, sizes=(1, 2), label="x")


def task(method: str, seed: int = 0) -> UnitTask:
    return UnitTask(Unit("tiny", "mine", "left", method, seed), STUDY, SETTINGS)


def test_a_unit_becomes_a_record():
    record = execute(task("sum", 7))
    assert isinstance(record, UnitRecord)
    assert Unit.of(record) == task("sum", 7).unit
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


def test_an_error_is_a_failure_with_its_last_lines():
    failure = execute(task("raises", 7))
    assert isinstance(failure, Failure)
    assert failure.unit == task("raises", 7).unit
    assert failure.reason == "ArithmeticError: seed 7 has no square root"
    assert "tiny_study.py" in failure.trace


def test_a_long_traceback_is_cut_to_its_end():
    def recurse(problem, method, seed, settings):
        return recurse(problem, method, seed, settings)

    failure = execute(UnitTask(task("sum").unit, Study("tiny", {}, {}, TinySettings, recurse), SETTINGS))
    assert "RecursionError" in failure.reason
    assert len(failure.trace.splitlines()) <= 12


def test_an_outcome_that_is_not_finite_is_a_failure():
    failure = execute(task("nan"))
    assert "Results must be finite numbers" in failure.reason


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
