"""Run one unit, and say what became of it."""

import time
import traceback
import warnings
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, final

import torch

from paper.engine.machine import describe_machine, describe_software
from paper.schema.record import UnitRecord
from paper.schema.record_lines import as_json
from paper.schema.study import Study
from paper.schema.unit import Unit

__all__ = ["Failure", "UnitTask", "execute", "unit_of"]

# Lines of a traceback that are kept: the error, and where it came from.
_NUM_LINES = 12


@final
@dataclass(frozen=True)
class UnitTask:
    """A unit with all that is needed to run it somewhere else.

    Attributes:
        unit: The unit.
        study: Its study.
        settings: The settings of the study.
    """

    unit: Unit
    study: Study[Any]
    settings: Any


@final
@dataclass(frozen=True)
class Failure:
    """A unit that did not end.

    Attributes:
        unit: The unit.
        trace: Why, in several lines.
    """

    unit: Unit
    trace: str

    @property
    def reason(self) -> str:
        """The error in one line."""
        return self.trace.splitlines()[-1]


def execute(task: UnitTask) -> UnitRecord | Failure:
    """Run a unit in this process, with one thread and without warnings; an error is returned, not raised."""
    unit = task.unit
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)  # as it is in a new process; another unit may have changed it
    torch.manual_seed(unit.seed)
    began, began_processor = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = as_json(task.study.run(unit.problem, unit.method, unit.seed, task.settings))
    except Exception as error:
        return Failure(unit, _last_lines(error))
    seconds, processor_seconds = time.perf_counter() - began, time.process_time() - began_processor
    return UnitRecord(
        study=unit.study,
        problem=unit.problem,
        method=unit.method,
        seed=unit.seed,
        scale=unit.scale,
        settings=as_json(asdict(task.settings)),
        outcome=outcome,
        seconds=round(seconds, 3),
        machine=describe_machine(),
        software=describe_software(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        processor_seconds=round(processor_seconds, 3),
    )


def unit_of(result: UnitRecord | Failure) -> Unit:
    """The unit that a result is about."""
    return Unit.of(result) if isinstance(result, UnitRecord) else result.unit


def _last_lines(error: Exception) -> str:
    lines = "".join(traceback.format_exception(error)).strip().splitlines()
    return "\n".join(lines[-_NUM_LINES:])
