"""Checkpoints of `streamgp stream`: all that a later run needs to go on as if there had been no end."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import streamgp.streams.saving  # noqa: F401 # registers streams
from streamgp.errors import FileFormatError, OptionError
from streamgp.storage import load, register, save
from streamgp.streams.report import ScoreReport
from streamgp.streams.stream import Stream
from streamgp.tables.lines import Position

__all__ = [
    "Checkpoint",
    "check_identity",
    "check_is_replaceable",
    "has_checkpoint",
    "load_checkpoint",
    "remove_checkpoint",
    "save_checkpoint",
]

_START = Position()
# Bad rows that are remembered one by one.
_MOST_SKIPPED = 20
# First bytes of an archive; a file that was cut short may have less.
_ARCHIVE = b"PK"

register(Position, name="cli.Position")


@register(name="cli.Checkpoint")
@final
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Progress of a run: what `streamgp.load(path)` returns of its file.

    Attributes:
        stream: The stream, which predicts and learns on.
        identity: What must be the same in the run that goes on.
        position: How far the source has been read.
        num_bytes: Length of the predictions until then.
        checksum: Of these.
        num_skipped: Number of bad rows that were left out.
        skipped: Line and issue of the first of them.
        num_unread: Number of targets that are there, but are not numbers.
    """

    stream: Stream
    identity: Mapping[str, Any]
    position: Position = _START
    num_bytes: int = 0
    checksum: int = 0
    num_skipped: int = 0
    skipped: tuple[tuple[int, str], ...] = ()
    num_unread: int = 0

    @property
    def num_rows(self) -> int:
        """Number of rows that were predicted."""
        return self.stream.num_rows_

    def predict(self, rows: Any, **options: Any) -> Any:
        """Predict rows of the table that the stream was read from; see `Stream.predict`."""
        return self.stream.predict(rows, **options)

    def score_report(self) -> ScoreReport:
        """Return how well the stream was predicted, each row before it was learned."""
        return self.stream.score_report()

    def skip(self, line: int, issue: str, position: Position) -> "Checkpoint":
        """Leave out a bad row."""
        skipped = (*self.skipped, (line, issue))[:_MOST_SKIPPED]
        return replace(self, position=position, num_skipped=self.num_skipped + 1, skipped=skipped)


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; the one before it is kept beside it, as `PATH.previous`."""
    if path.exists():
        path.replace(_previous(path))
    save(checkpoint, path)


def load_checkpoint(path: Path) -> tuple[Checkpoint, str | None] | None:
    """Read the last checkpoint that is whole.

    A damaged one is moved aside, so that it does not become the previous one.

    Returns:
        The checkpoint, and a sentence about damage if there was any; None if there is no checkpoint.

    Raises:
        FileFormatError: If there are checkpoints, but none is whole.
    """
    if not has_checkpoint(path):
        return None
    try:
        return load(path, kind=Checkpoint), None
    except FileFormatError as error:
        damage = str(error)
    previous = _previous(path)
    if not previous.exists():
        raise FileFormatError(f"{damage} There is no earlier one; start again with --fresh.")
    try:
        checkpoint = load(previous, kind=Checkpoint)
    except FileFormatError as error:
        raise FileFormatError(f"{damage} The one before it: {error} Start again with --fresh.") from error
    if not path.exists():
        return checkpoint, None
    aside = path.with_name(f"{path.name}.damaged")
    path.replace(aside)
    return checkpoint, f"{damage} It was moved to {aside}, and the one before it is used."


def has_checkpoint(path: Path) -> bool:
    """Tell whether there is a checkpoint, damaged or not."""
    return path.exists() or _previous(path).exists()


def check_is_replaceable(path: Path) -> None:
    """Refuse a file that never was a checkpoint, damaged or not, before it is replaced as one."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        beginning = file.read(len(_ARCHIVE))
    if not _ARCHIVE.startswith(beginning):
        raise OptionError(
            f"{path} is not a checkpoint, and would be replaced by one. Name another --checkpoint, or remove the file."
        )


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint, and the one before it."""
    _previous(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def check_identity(saved: Mapping[str, Any], asked: Mapping[str, Any], path: Path) -> None:
    """Refuse the checkpoint of another stream or of other options."""
    for name, value in asked.items():
        if saved.get(name) != value:
            raise OptionError(
                f"The checkpoint {path} was written with {name} = {saved.get(name)!r}, but now it is {value!r}. Pass "
                "the options of that run, or another --checkpoint, or start again with --fresh."
            )


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.name}.previous")
