"""Which of several runs does a unit: locks that end with the process that holds them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import final

from filelock import FileLock, Timeout

from paper.engine.execution import UnitTask
from paper.engine.results import load_records
from paper.schema.record_lines import as_json
from paper.schema.unit import Unit

__all__ = ["UnitLocks", "claim_units"]


@final
class UnitLocks:
    """Locks on units, for all runs that write to one directory.

    The operating system frees the lock of a process that is gone, however it ended, so that no claim is ever stale. The
    files have no content, and are removed when their unit has ended.
    """

    def __init__(self, directory: Path) -> None:
        """Prepare for a directory of results; nothing is locked yet."""
        self._directory = directory
        self._held: dict[Unit, FileLock] = {}

    def claim(self, unit: Unit) -> bool:
        """Lock a unit, unless another process has it."""
        path = self._directory / unit.scale / ".locks" / f"{unit.study}-{unit.problem}-{unit.method}-{unit.seed}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, timeout=0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            return False
        self._held[unit] = lock
        return True

    def release(self, unit: Unit) -> None:
        """Free a unit; nothing happens if it was not locked here."""
        lock = self._held.pop(unit, None)
        if lock is not None:
            # While it is locked: whoever waits for the file finds it gone, and makes another.
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()

    def __enter__(self) -> "UnitLocks":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for unit in tuple(self._held):
            self.release(unit)


def claim_units(
    tasks: Iterable[UnitTask], directory: Path, *, locks: UnitLocks, skip: Callable[[Unit], None]
) -> Iterator[UnitTask]:
    """The units that no other process runs or has run since they were planned, each locked when it is asked for.

    Args:
        tasks: The units.
        directory: Where files of results are.
        locks: Locks on units of that directory.
        skip: Called with each unit that is left to others.
    """
    for task in tasks:
        if not locks.claim(task.unit):
            skip(task.unit)
        elif _has_run(task, directory):
            locks.release(task.unit)
            skip(task.unit)
        else:
            yield task


def _has_run(task: UnitTask, directory: Path) -> bool:
    records, _ = load_records(task.unit.study, task.unit.scale, directory, settings=as_json(asdict(task.settings)))
    return any(Unit.of(record) == task.unit for record in records.all)
