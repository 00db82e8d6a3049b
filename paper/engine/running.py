"""Units as tasks of Dask: processes run them, and the client alone writes what came of them."""

import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, final

import torch
from filelock import FileLock, Timeout

from paper.engine.machine import describe_machine, describe_software
from paper.schema.record import Unit, UnitRecord
from paper.schema.results import append_record, as_json
from paper.schema.study import Study
from streamgp.errors import OptionError, UnsupportedError

__all__ = ["Failure", "UnitTask", "connect", "execute", "only_run", "run_units"]

# Lines of a traceback that are kept: the error, and where it came from.
_NUM_LINES = 12
_CONNECT_SECONDS = 20


@final
@dataclass(frozen=True)
class UnitTask:
    """A unit with all that is needed to run it somewhere else."""

    unit: Unit
    study: Study[Any]
    settings: Any


@final
@dataclass(frozen=True)
class Failure:
    """A unit that did not end, and why, in several lines."""

    unit: Unit
    trace: str


def execute(task: UnitTask) -> UnitRecord:
    """Run a unit in this process, with one thread and without warnings."""
    unit = task.unit
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)  # as it is in a new process; another unit may have changed it
    torch.manual_seed(unit.seed)
    began, began_processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = as_json(task.study.run(unit.problem, unit.method, unit.seed, task.settings))
    return UnitRecord(
        study=unit.study,
        problem=unit.problem,
        method=unit.method,
        seed=unit.seed,
        scale=unit.scale,
        settings=as_json(asdict(task.settings)),
        outcome=outcome,
        seconds=round(time.perf_counter() - began, 3),
        machine=describe_machine(),
        software=describe_software(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        processor_seconds=round(time.process_time() - began_processor, 3),
    )


@contextmanager
def connect(address: str | None, num_jobs: int) -> Iterator[Any]:
    """A client of a cluster: of one at an address, or of processes on this machine, which end with it.

    Raises:
        UnsupportedError: If Dask is not installed.
        OptionError: If nobody answers.
    """
    try:
        from dask import config
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise UnsupportedError("Units run on Dask. Install it with: pip install --group paper") from error
    if address is None:
        # Without a limit of memory, as a worker that is over its share would be killed in the middle of a unit; and a
        # unit that is killed is a failure, and does not start again.
        options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0, "silence_logs": 50}
        with (
            config.set({"distributed.scheduler.allowed-failures": 0}),
            LocalCluster(n_workers=num_jobs, **options) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    try:
        remote = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OptionError(
            f"No Dask scheduler answers at {address!r} ({error}). Start one with `dask scheduler`, and name its "
            "address with --dask."
        ) from error
    with remote as client:
        yield client


@contextmanager
def only_run(directory: Path) -> Iterator[None]:
    """Lock a directory of results for this run; the operating system frees the lock of a process that is gone.

    Raises:
        OptionError: If another run writes there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lock = FileLock(directory / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise OptionError(
            f"Another run writes to {directory}. Wait until it has ended, give it more --jobs, or name another "
            "directory with --results."
        ) from error
    with lock:
        yield
    lock.release(force=True)


def run_units(
    tasks: Sequence[UnitTask], client: Any, directory: Path, *, tell: Callable[[UnitRecord | Failure], None]
) -> None:
    """Run units in their order, as many at a time as there are workers, and write a line for each that has ended.

    Args:
        tasks: The units.
        client: Of a Dask cluster.
        directory: Where files of results are.
        tell: Called with what came of each unit, after it was written.
    """
    from distributed import as_completed

    waiting = iter(tasks)
    running: dict[Any, Unit] = {}
    ended = as_completed(loop=client.loop)

    def start() -> None:
        # No more than may run: a worker that is lost takes no other unit with it.
        for task in islice(waiting, max(1, sum(client.nthreads().values())) - len(running)):
            future = client.submit(execute, task, pure=False)
            running[future] = task.unit
            ended.add(future)

    try:
        start()
        for future in ended:
            unit = running.pop(future)
            if future.status == "finished":
                record: UnitRecord = future.result()
                append_record(record, directory)
                tell(record)
            else:
                error = future.exception()
                lines = "".join(traceback.format_exception(type(error), error, future.traceback())).strip().splitlines()
                tell(Failure(unit, "\n".join(lines[-_NUM_LINES:])))
            start()
    finally:
        client.cancel(list(running))
