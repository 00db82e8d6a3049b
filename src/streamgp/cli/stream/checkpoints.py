"""Checkpoints of `streamgp stream`: all that a later run needs to go on as if there had been no end."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from streamgp.cli.reading.lines import Position
from streamgp.cli.stream.scoring import Learner
from streamgp.errors import FileFormatError, OptionError
from streamgp.storage import load, reads_version_1, register, save
from streamgp.streaming.metrics import StreamMetrics

__all__ = ["Progress", "check_identity", "has_checkpoint", "load_checkpoint", "remove_checkpoint", "save_checkpoint"]

_START = Position()
# Bad rows that are remembered one by one.
_MOST_SKIPPED = 20


register(Position)


@register
@final
@dataclass(frozen=True, eq=False)
class Progress:
    """How far a stream is; a frozen value.

    Attributes:
        learner: What is known.
        metrics: How good predictions were.
        position: How far the source has been read.
        num_rows: Rows that were predicted and learned.
        num_bytes: Length of the predictions until then.
        num_skipped: Bad rows that were left out.
        skipped: Line and issue of the first of them.
        num_refits: How often hyperparameters were learned after the warm-up.
        num_undone: How often that was undone.
    """

    learner: Learner
    metrics: StreamMetrics
    position: Position = _START
    num_rows: int = 0
    num_bytes: int = 0
    num_skipped: int = 0
    skipped: tuple[tuple[int, str], ...] = ()
    num_refits: int = 0
    num_undone: int = 0

    def skip(self, line: int, issue: str, position: Position) -> "Progress":
        """Leave out a bad row."""
        skipped = (*self.skipped, (line, issue))[:_MOST_SKIPPED]
        return replace(self, position=position, num_skipped=self.num_skipped + 1, skipped=skipped)


@register
@final
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a checkpoint's file holds.

    Attributes:
        identity: What must be the same in the run that goes on.
        progress: How far the stream was.
    """

    identity: Mapping[str, Any]
    progress: Progress


def save_checkpoint(path: Path, progress: Progress, identity: Mapping[str, Any]) -> None:
    """Write a checkpoint; the one before it is kept beside it, as `PATH.previous`.

    Args:
        path: The file.
        progress: What to keep.
        identity: What must be the same in the run that goes on.
    """
    checkpoint = Checkpoint({name: _plain(value) for name, value in identity.items()}, progress)
    if path.exists():
        path.replace(_previous(path))
    save(checkpoint, path)


def load_checkpoint(path: Path) -> tuple[Progress, dict[str, Any], str | None] | None:
    """Read the last checkpoint that is whole.

    A damaged one is moved aside, so that it does not become the previous one.

    Returns:
        How far the stream was, the identity of the run, and a sentence about damage if there was any; None if there is
        no checkpoint.

    Raises:
        FileFormatError: If there are checkpoints, but none is whole.
    """
    if not has_checkpoint(path):
        return None
    try:
        return *_read(path), None
    except FileFormatError as error:
        damage = str(error)
    previous = _previous(path)
    if not previous.exists():
        raise FileFormatError(f"{damage} There is no earlier one; start again with --fresh.")
    try:
        progress, identity = _read(previous)
    except FileFormatError as error:
        raise FileFormatError(f"{damage} The one before it: {error} Start again with --fresh.") from error
    if not path.exists():
        return progress, identity, None
    aside = path.with_name(f"{path.name}.damaged")
    path.replace(aside)
    return progress, identity, f"{damage} It was moved to {aside}, and the one before it is used."


def has_checkpoint(path: Path) -> bool:
    """Whether there is a checkpoint, damaged or not."""
    return path.exists() or _previous(path).exists()


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


def _read(path: Path) -> tuple[Progress, dict[str, Any]]:
    checkpoint = load(path, kind=Checkpoint)
    return checkpoint.progress, dict(checkpoint.identity)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@reads_version_1("streamgp.StreamCheckpoint")
def _refuse(description: dict[str, Any]) -> Any:
    """Checkpoints of format 1 hold one belief, where there are now several."""
    raise FileFormatError(
        "The checkpoint was written by an earlier version of streamgp, whose streams were learned with one half-life. "
        "Finish that run with the version that began it, or start again with --fresh."
    )
