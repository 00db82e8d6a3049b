"""What runs units: by default, processes on this machine."""

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import final

from joblib import Parallel, delayed, parallel_config

from paper.engine.execution import Failure, UnitTask
from paper.engine.isolation import execute_apart
from paper.schema.record import UnitRecord
from paper.schema.unit import Unit

__all__ = ["AbstractEngine", "JoblibEngine"]

# How long a worker waits for a unit before it ends: those of a run that was killed wait in vain.
_IDLE_SECONDS = 30


class AbstractEngine(ABC):
    """Runs units, in any order and several at a time."""

    @abstractmethod
    def run(self, tasks: Iterable[UnitTask], *, announce: Callable[[Unit], None]) -> Iterator[UnitRecord | Failure]:
        """Run units.

        Args:
            tasks: The units, asked for when they can be run; each is run once, or again if what ran it is lost.
            announce: Called with a unit when it starts, where the engine knows; from any thread.

        Returns:
            A result for each unit, as it ends. Closing the iterator stops those that run.
        """

    @property
    @abstractmethod
    def num_workers(self) -> int:
        """How many units run at a time."""


@final
@dataclass(frozen=True)
class JoblibEngine(AbstractEngine):
    """Processes on this machine, through joblib; each unit has one of its own, with one thread.

    Attributes:
        num_jobs: How many units run at a time.
    """

    num_jobs: int

    @property
    def num_workers(self) -> int:
        return self.num_jobs

    def run(self, tasks: Iterable[UnitTask], *, announce: Callable[[Unit], None]) -> Iterator[UnitRecord | Failure]:
        with parallel_config(inner_max_num_threads=1, backend="loky"):
            parallel = Parallel(
                max(2, self.num_jobs),  # with a single worker, joblib would use this very process
                return_as="generator_unordered",
                pre_dispatch=self.num_jobs,
                batch_size=1,
                initializer=_ignore_interrupts,
                idle_worker_timeout=_IDLE_SECONDS,
            )
            # No more units are handed out than may run, in their order: when one has ended, the next one starts.
            results = parallel(delayed(execute_apart)(task) for task in _announced(tasks, announce))
        yield from results


def _announced(tasks: Iterable[UnitTask], announce: Callable[[Unit], None]) -> Iterator[UnitTask]:
    for task in tasks:
        announce(task.unit)
        yield task


def _ignore_interrupts() -> None:
    # An interrupt from the keyboard reaches all processes; the first one stops the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
