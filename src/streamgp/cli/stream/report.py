"""Report of `streamgp stream` on standard error: live progress, and a table at the end."""

import time
import warnings
from types import TracebackType
from typing import TextIO, final

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from streamgp.cli.error_handling import printable
from streamgp.cli.stream.checkpoints import Checkpoint
from streamgp.errors import StreamGPWarning

__all__ = ["StreamReport"]

# Seconds between two updates: more of them cannot be read.
_INTERVAL = 0.2
# Targets that could not be read which are told one by one.
_MOST_SAID = 20


@final
class StreamReport:
    """Live progress, if there is a terminal, and a summary."""

    def __init__(self, console: Console, *, is_quiet: bool, num_rows: int) -> None:
        """Start the clock.

        Args:
            console: Standard error.
            is_quiet: Whether nothing is shown.
            num_rows: Rows of earlier runs, which do not count for the speed.
        """
        self._console = console
        self._is_quiet = is_quiet
        self._num_rows = num_rows
        self._began = self._shown = time.monotonic()
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=is_quiet or not console.is_terminal,
        )
        self._task = self._bar.add_task("reading", total=None)
        self._catching = warnings.catch_warnings()
        self._num_warnings = 0
        self._num_unread = 0

    def __enter__(self) -> "StreamReport":
        self._catching.__enter__()
        # The other rules remember each text, and a long stream may have many.
        warnings.simplefilter("always", StreamGPWarning)
        warnings.showwarning = self._warn
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        self._catching.__exit__(kind, error, trace)

    def say(self, sentence: str) -> None:
        """Print a sentence."""
        if not self._is_quiet:
            self._console.print(printable(sentence), soft_wrap=True, highlight=False, markup=False)

    def say_unread(self, line: int, issue: str) -> None:
        """Warn of a target that is taken as missing; of the first ones only."""
        self._num_unread += 1
        if self._num_unread <= _MOST_SAID:
            more = " Further ones are only counted." if self._num_unread == _MOST_SAID else ""
            self.say(f"Warning: line {line} is predicted and not learned: {issue}.{more}")

    def show(self, progress: Checkpoint) -> None:
        """Show how far the stream is; not more often than can be read."""
        now = time.monotonic()
        if self._bar.disable or now - self._shown < _INTERVAL:
            return
        self._shown = now
        parts = [f"{progress.num_rows} rows", f"{self._rate(progress):.0f}/s"]
        parts += [f"{name} {value:.4g}" for name, value in list(progress.score_report().metrics.items())[:3]]
        parts.append(f"{progress.stream.num_inducing_} inducing points")
        self._bar.update(self._task, description=" · ".join(parts))

    def finish(self, progress: Checkpoint, *, files: dict[str, str]) -> None:
        """Print the table, and the bad rows.

        Args:
            progress: How far the stream came.
            files: What was written, by what it is.
        """
        if self._is_quiet:
            return
        stream, report = progress.stream, progress.score_report()
        table = Table(title="Predicted before learning", show_header=False)
        table.add_column()
        table.add_column(justify="right")
        table.add_row("rows", str(progress.num_rows))
        table.add_row("rows per second", f"{self._rate(progress):.1f}")
        for name, value in report.metrics.items():
            table.add_row(name, f"{value:.5g}")
        if set(report.coverage_by_horizon) - {"1"}:
            for name, (_, share) in report.coverage_by_horizon.items():
                table.add_row(f"coverage {name} rows ahead", f"{share:.3g}")
        if stream.num_unlabeled_:
            table.add_row("rows without a target", str(stream.num_unlabeled_))
        if progress.num_unread:
            table.add_row("of these, targets that are not numbers", str(progress.num_unread))
        if stream.num_drifts_:
            table.add_row("changes found", str(stream.num_drifts_))
        table.add_row("inducing points", str(progress.stream.num_inducing_))
        table.add_row("rows far outside", str(stream.num_outside_))
        table.add_row("bad rows left out", str(progress.num_skipped))
        table.add_row("warnings", str(self._num_warnings))
        self._console.print(table)
        for hint in report.hints:
            self.say(f"Warning: {hint}")
        for line, issue in progress.skipped:
            self.say(f"Line {line} was left out: {issue}.")
        if progress.num_skipped > len(progress.skipped):
            self.say(f"And {progress.num_skipped - len(progress.skipped)} more.")
        for name, path in files.items():
            self.say(f"{name}: {path}")

    def _warn(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Print the first warning, and count all."""
        self._num_warnings += 1
        if self._num_warnings == 1:
            self.say(f"Warning: {message} Further ones are only counted.")

    def _rate(self, progress: Checkpoint) -> float:
        return (progress.num_rows - self._num_rows) / max(time.monotonic() - self._began, 1e-9)
