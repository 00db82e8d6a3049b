import os

import pytest

from paper.engine.execution import Failure, UnitTask, execute
from paper.engine.isolation import execute_apart
from paper.schema.unit import Unit
from paper.tests.tiny_study import STUDY, TinySettings


def task(method: str) -> UnitTask:
    settings = TinySettings(pause=0.0, sizes=(3,), label="x")
    return UnitTask(Unit("tiny", "mine", "right", method, 5), STUDY, settings)


def test_a_unit_apart_finds_what_it_finds_here():
    assert execute_apart(task("sum")).outcome == execute(task("sum")).outcome


def test_a_unit_has_a_process_of_its_own():
    first, second = (execute_apart(task("process")).outcome["process"] for _ in range(2))
    assert len({first, second, os.getpid()}) == 3
    for process in (first, second):
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_unit_that_is_killed_is_a_failure():
    unit = task("dies").unit
    assert execute_apart(task("dies")) == Failure(unit, "Its process ended with code -9, without a result.")


def test_an_error_of_a_unit_is_a_failure():
    assert execute_apart(task("raises")).reason == "ArithmeticError: seed 5 has no square root"
