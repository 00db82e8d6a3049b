"""Journal of all that a stream has heard since its checkpoint, on the disk before it is acknowledged."""

import hashlib
import json
import os
import threading
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, final

from streamgp.errors import FileFormatError, SaveError
from streamgp.storage.writing import sync_directory, write_atomically

__all__ = ["Journal", "digest"]

# Where the journal of a checkpoint waits that is just being renamed.
_NEXT = ".next"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, by which a journal knows the checkpoint that it follows."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@final
class Journal:
    """Events in the order in which they happened, one in each line, beside the checkpoint that they follow.

    The first line names the checkpoint. Each line begins with its checksum: a last one that was cut short was never
    acknowledged, and is dropped.

    Attributes:
        path: The file.
        size: Its bytes so far.
    """

    def __init__(self, path: Path, size: int) -> None:
        """Go on with a file that is there."""
        self.path, self.size = path, size
        self._file = path.open("r+b", buffering=0)
        self._file.truncate(size)
        self._file.seek(size)
        self._num_synced, self._syncing = 0, threading.Lock()

    @classmethod
    def open(cls, path: Path, checkpoint: Path) -> tuple["Journal", list[Any]]:
        """Open the journal of a checkpoint, or begin one; returns what happened since.

        Raises:
            FileFormatError: If it is damaged, or follows another file.
        """
        following, after = path.with_name(path.name + _NEXT), digest(checkpoint)
        if following.exists() and _lines(following)[0][:1] == [after]:  # killed between the two renames
            following.replace(path)
        following.unlink(missing_ok=True)
        if not path.exists():
            _write(path, after, ())
        events, size = _lines(path)
        if events[:1] != [after]:
            raise FileFormatError(
                f"{path} holds rows that were learned after another version of {checkpoint}. Put that version back, or "
                f"move {path} away to go on without these rows."
            )
        return cls(path, size), events[1:]

    def append(self, event: Any) -> int:
        """Write an event; returns where it begins. A kill of the process does not lose it any more.

        Raises:
            SaveError: If the disk refuses; the journal is as it was.
        """
        start, line = self.size, _line(event)
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError("no room is left")
        except OSError as error:
            self.retract(start)
            raise SaveError(
                f"{self.path} cannot be written: {error.strerror or error}. Make room on the disk."
            ) from None
        self.size += len(line)
        return start

    def retract(self, start: int) -> None:
        """Take back the last event, which began there."""
        with suppress(OSError):
            self._file.truncate(start)
        self._file.seek(start)
        self.size = start

    def sync(self) -> None:
        """Bring all that was written to the disk, so that a loss of power does not lose it; one call does for many."""
        wanted = self.size
        with self._syncing:
            if self._num_synced < wanted:
                self._num_synced = self.size
                os.fsync(self._file.fileno())

    def follow(self, checkpoint: Path, written: Path, first: Iterable[Any], start: int) -> None:
        """Replace a checkpoint by one that was just written, and begin anew with what happened since.

        Whenever the process is killed, a checkpoint and a journal that follows it are there.

        Args:
            checkpoint: The one that counts so far.
            written: The new one, beside it.
            first: What the new journal begins with.
            start: Where what happened after the new checkpoint begins in this journal.
        """
        following = self.path.with_name(self.path.name + _NEXT)
        with self._syncing:
            self._file.seek(start)
            tail = self._file.read(self.size - start)
            _write(following, digest(written), first, tail)
            written.replace(checkpoint)
            following.replace(self.path)
            sync_directory(checkpoint.parent)
            self._file.close()
            self.size = self._num_synced = self.path.stat().st_size
            self._file = self.path.open("r+b", buffering=0)
            self._file.seek(self.size)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _line(event: Any) -> bytes:
    text = json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _write(path: Path, after: str, events: Iterable[Any], tail: bytes = b"") -> None:
    content = b"".join(map(_line, (after, *events))) + tail

    def write(file: BinaryIO) -> None:
        file.write(content)

    write_atomically(path, write)


def _lines(path: Path) -> tuple[list[Any], int]:
    """Read all events, and how many bytes they take."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    events = [_read(line, path) for line in content[:whole].split(b"\n")[:-1]]
    return events, whole


def _read(line: bytes, path: Path) -> Any:
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise FileFormatError(
            f"{path} is damaged: one of its lines does not have its checksum. Move it away to go on without its rows."
        )
    return json.loads(text.decode("utf-8", "surrogatepass"))
