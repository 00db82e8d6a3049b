"""What `python -m paper run` shows while units run."""

import threading
import time
from collections import Counter
from types import TracebackType
from typing import final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.progress import Task as BarTask
from rich.text import Text

from paper.engine.durations import show_duration
from paper.engine.execution import Failure, unit_of
from paper.engine.forecast import Forecast
from paper.schema.record import UnitRecord
from paper.schema.unit import Unit

__all__ = ["RunProgress"]

# More units than this are counted, not named.
_NUM_NAMED = 4


@final
class RunProgress:
    """A bar with the time left, the units that run, and failures; or a line for each unit, if there is no terminal."""

    def __init__(self, console: Console, forecast: Forecast, units: tuple[Unit, ...], *, num_workers: int) -> None:
        """Prepare the bar.

        Args:
            console: Where to show it.
            forecast: Times of earlier units.
            units: All units that are to run.
            num_workers: How many of them run at a time.
        """
        self._console = console
        self._forecast = forecast
        self._num_workers = num_workers
        self._open = dict.fromkeys(units)
        self._running: dict[Unit, float] = {}  # when each started
        self._num_units = len(units)
        self._num_failures = 0
        self._num_skipped = 0
        self._lock = threading.Lock()
        self._left = _TimeLeft()
        self._bar = Bar(
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            self._left,
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=len(units))
        self._show()

    def __enter__(self) -> "RunProgress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    @property
    def num_skipped(self) -> int:
        """How many units were left to others."""
        return self._num_skipped

    def start(self, unit: Unit) -> None:
        """A unit has started; any thread may say so."""
        with self._lock:
            self._running[unit] = time.monotonic()
            self._show()

    def skip(self, unit: Unit) -> None:
        """A unit was left to others; any thread may say so."""
        with self._lock:
            self._num_skipped += 1
            self._open.pop(unit, None)
            self._show()

    def finish(self, result: UnitRecord | Failure) -> None:
        """A unit has ended."""
        with self._lock:
            self._finish(result)

    def _finish(self, result: UnitRecord | Failure) -> None:
        unit = unit_of(result)
        self._running.pop(unit, None)
        self._open.pop(unit, None)
        if isinstance(result, UnitRecord):
            self._forecast = self._forecast.learn((result,))
            ending = show_duration(result.seconds)
        else:
            self._num_failures += 1
            ending = f"failed: {result.reason}"
        self._show()
        num_ended = self._num_units - len(self._open)
        if self._bar.disable or isinstance(result, Failure):
            line = f"{num_ended} of {self._num_units}: {unit}: {ending}"
            self._console.print(line, soft_wrap=True, highlight=False, markup=False)

    def _show(self) -> None:
        parts = [f"{self._num_failures} failed"] if self._num_failures else []
        if len(self._running) <= _NUM_NAMED:
            parts += [str(unit) for unit in self._running]
        else:
            counts = Counter(unit.study for unit in self._running)
            parts += [f"{count} of {study}" for study, count in counts.items()]
        self._left.set(self._seconds_left())
        num_ended = self._num_units - len(self._open)
        self._bar.update(self._task, completed=num_ended, description=" · ".join(parts) or "running")

    def _seconds_left(self) -> float:
        """The forecast for all units that have not ended, less what those that run have had."""
        now = time.monotonic()
        had = sum(now - began for began in self._running.values())
        return self._forecast.seconds(self._open, num_workers=self._num_workers) - had / self._num_workers


@final
class _TimeLeft(ProgressColumn):
    """The forecast when it was last made, less the time since then."""

    def __init__(self) -> None:
        super().__init__()
        self._end = time.monotonic()

    def set(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def render(self, task: BarTask) -> Text:
        return Text(f"{show_duration(max(self._end - time.monotonic(), 0.0))} left")
