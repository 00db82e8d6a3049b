"""A stream that many predict and one writer learns, and of which a crash loses nothing that was acknowledged."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, final

from streamgp.cli.locks import locked
from streamgp.errors import FileFormatError, OptionError, StreamGPError
from streamgp.serve.journal import Journal
from streamgp.serve.models import Model, Rows
from streamgp.storage import load

__all__ = ["GoneError", "ServedStream"]

# Rows that wait for their targets at most; larger takes more memory.
_MOST_OPEN = 100_000
# Bytes of a journal after which a checkpoint is due however few rows were learned.
_LONGEST_JOURNAL = 64 * 2**20
# Tickets that were learned and are remembered, so that a second try is told so.
_MOST_REMEMBERED = 10_000


class GoneError(StreamGPError, LookupError):
    """A ticket is not there any more, or never was."""


class _Open(NamedTuple):
    """Rows that were predicted, and whose targets are to come."""

    rows: Rows
    ticket: Any


@final
class ServedStream:
    """A model, its checkpoint and its journal, behind one lock.

    What is learned is in the journal before it is acknowledged. After a crash the rows since the checkpoint are learned
    again, in their order. Rows that wait for targets then are expected anew, by what was known at the checkpoint.

    Attributes:
        path: The file that was saved, and that checkpoints replace.
        model: What is known.
    """

    def __init__(self, path: Path, *, checkpoint_every: int = 10_000) -> None:
        """Read a file, and learn again what its journal has.

        Args:
            path: A stream that was saved.
            checkpoint_every: Rows learned between two checkpoints.
        """
        self.path = path
        self._checkpoint_every = checkpoint_every
        self._lock, self._saving = threading.Lock(), threading.Lock()
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._closed: OrderedDict[str, None] = OrderedDict()
        self._num_open = self._num_tickets = self._num_since = 0
        self._stack = ExitStack()
        self._stack.enter_context(locked(path, patience=1.0))
        try:
            served = load(path)
            if not Model.is_known(served):
                raise FileFormatError(f"{path} does not hold a stream that learns.")
            self.model = Model(served)
            self._journal, events = Journal.open(path.with_name(path.name + ".journal"), path)
            self._stack.callback(self._journal.close)
            for event in events[:-1]:
                self._replay(event)
            if events:
                with suppress(StreamGPError, ValueError):  # killed before it was refused, so never acknowledged
                    self._replay(events[-1])
        except BaseException:
            self._stack.close()
            raise

    @property
    def num_open(self) -> int:
        """Number of rows that wait for their targets."""
        return self._num_open

    @property
    def num_since_checkpoint(self) -> int:
        """Number of rows learned that the checkpoint does not have."""
        return self._num_since

    def predict(
        self, rows: Rows, *, quantiles: Sequence[float] = (0.05, 0.95), has_ticket: bool
    ) -> tuple[str | None, list[dict[str, Any]]]:
        """Predict the next rows.

        Args:
            rows: Objects with values by name, or lists of values.
            quantiles: Probabilities of the quantiles of numbers that are returned.
            has_ticket: Whether targets will come, by the ticket that is returned.
        """
        with self._lock:
            if not has_ticket:
                return None, self.model.predict(rows, quantiles)
            ticket, said = self.model.expect(rows, quantiles)
            name = f"{self._num_tickets + 1:x}"
            self._journal.append({"ticket": name, "rows": rows})
            self._remember(name, _Open(rows, ticket))
        return name, said

    def learn(self, *, targets: Sequence[Any] | None, ticket: str | None = None, rows: Rows | None = None) -> int:
        """Learn rows, or the targets of a ticket; they are on the disk when this returns.

        Returns:
            Number of rows learned so far.

        Raises:
            GoneError: If the ticket is not waited for.
        """
        event = {"learned": ticket, "targets": targets} if rows is None else {"rows": rows, "targets": targets}
        with self._lock:
            self._check(ticket, rows, targets)
            start = self._journal.append(event)
            try:
                self._learn(event)
            except BaseException:
                self._journal.retract(start)
                raise
            num_learned = self.model.num_learned
        self._journal.sync()
        return num_learned

    def explain(self, rows: Rows) -> list[dict[str, Any]]:
        """Say why rows are predicted as they are."""
        with self._lock:
            return self.model.explain(rows)

    def report(self) -> Any:
        """Return what became of predictions."""
        with self._lock:
            return self.model.report()

    @property
    def is_checkpoint_due(self) -> bool:
        """Tell whether enough was learned since the last checkpoint."""
        is_long = self._num_since >= self._checkpoint_every or self._journal.size > _LONGEST_JOURNAL
        return is_long and not self.model.is_refitting  # a save would wait for that, and requests for the save

    def checkpoint(self) -> None:
        """Replace the file by all that is known, and begin a new journal."""
        with self._saving, self._lock:
            written = self.path.with_name(f".{self.path.name}.checkpoint")
            self.model.save(written)
            opened = [{"ticket": name, "rows": each.rows} for name, each in self._open.items()]
            first = [{"num_tickets": self._num_tickets}, *opened]
            self._journal.follow(self.path, written, first, self._journal.size)
            self._num_since = 0

    def close(self) -> None:
        """Write a checkpoint, and let others have the file."""
        try:
            self.checkpoint()
        finally:
            self._stack.close()

    def _check(self, ticket: str | None, rows: Rows | None, targets: Sequence[Any] | None) -> None:
        if rows is None and ticket is not None:
            if ticket in self._closed:
                raise GoneError(f"Ticket {ticket!r} was learned already. Nothing was learned twice.")
            if ticket not in self._open:
                raise GoneError(
                    f"There is no ticket {ticket!r}, or it waited too long. Send its rows with the targets."
                )
            rows = self._open[ticket].rows
        if rows is not None and targets is not None and len(rows) != len(targets):
            raise OptionError(
                f"There are {len(rows)} rows, but {len(targets)} targets. Send one for each; null is none."
            )

    def _learn(self, event: Any) -> None:
        """Learn what an event says."""
        targets = event["targets"]
        if "rows" in event:
            self.model.learn(event["rows"], targets)
        else:
            name = event["learned"]
            self.model.learn_ticket(self._open[name].ticket, targets)
            self._num_open -= len(self._open.pop(name).rows)
            self._closed[name] = None
            if len(self._closed) > _MOST_REMEMBERED:
                self._closed.popitem(last=False)
        self._num_since += len(event["rows"] if targets is None else targets)

    def _replay(self, event: Any) -> None:
        """Do again what an event says."""
        if "targets" in event:
            self._learn(event)
        elif "ticket" in event:
            ticket, _ = self.model.expect(event["rows"], ())
            self._remember(event["ticket"], _Open(event["rows"], ticket))
        else:
            self._num_tickets = event["num_tickets"]

    def _remember(self, name: str, opened: _Open) -> None:
        """Wait for the targets of rows, and forget those that have waited longest, if there are too many."""
        self._num_tickets = max(self._num_tickets, int(name, 16))
        self._open[name] = opened
        self._num_open += len(opened.rows)
        while self._num_open > _MOST_OPEN and len(self._open) > 1:
            _, oldest = self._open.popitem(last=False)
            self._num_open -= len(oldest.rows)
