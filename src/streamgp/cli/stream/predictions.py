"""The file of predictions, as JSON lines; it can be cut back to where a checkpoint was.

Beside it, a hidden file names the checkpoint that it belongs to, so that no other run replaces it.
"""

import json
import os
import sys
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, final

from streamgp.cli.stream.checkpoints import has_checkpoint
from streamgp.errors import FileFormatError, OptionError
from streamgp.storage.writing import write_atomically

__all__ = ["PredictionFile", "check_unclaimed", "claim"]

# Bytes that are read at once to compare a file with its checksum.
_CHUNK = 1 << 20


@final
class PredictionFile:
    """File to which predictions are written, or standard output.

    Attributes:
        checksum: Of all that was written, in earlier runs, too.
    """

    def __init__(self, path: Path | None, num_bytes: int, checksum: int = 0) -> None:
        """Open a file and cut it to what is known to be right.

        Args:
            path: The file, or None for standard output.
            num_bytes: Length of what stays; 0 to start anew.
            checksum: Of what stays.
        """
        self._path = path
        self.checksum = checksum
        if path is not None and num_bytes:
            self.checksum = _check_beginning(path, num_bytes, checksum)
        self._file: BinaryIO = sys.stdout.buffer if path is None else _open(path, num_bytes)

    def __enter__(self) -> "PredictionFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._path is not None:
            self._file.close()

    def write(self, entries: Iterable[Mapping[str, Any]]) -> int:
        """Write one line for each entry; returns the number of bytes."""
        entries = list(entries)
        try:
            content = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries).encode()
        except UnicodeEncodeError:  # half of a pair of surrogates, which JSON can escape
            content = "".join(f"{json.dumps(entry)}\n" for entry in entries).encode()
        try:
            self._file.write(content)
            self._file.flush()
        except BrokenPipeError:
            # What is still buffered would fail again, with a traceback, when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._file.fileno())
            raise OptionError("Nobody reads the predictions any more; the stream ends here.") from None
        self.checksum = zlib.crc32(content, self.checksum)
        return len(content)

    def sync(self, num_bytes: int) -> None:
        """Bring everything to the disk, without lines after the first `num_bytes` bytes."""
        if self._path is not None:
            self._file.truncate(num_bytes)
            self._file.seek(num_bytes)
            os.fsync(self._file.fileno())


def check_unclaimed(path: Path | None, checkpoint: Path | None) -> None:
    """Refuse to replace the predictions that another checkpoint belongs to.

    Args:
        path: The file of predictions, or None for standard output.
        checkpoint: That of this run, or None.
    """
    if path is None or not path.is_file() or not path.stat().st_size or not _owner(path).is_file():
        return
    owner = Path(os.fsdecode(_owner(path).read_bytes()))
    if has_checkpoint(owner) and (checkpoint is None or checkpoint.resolve() != owner):
        raise OptionError(
            f"{path} holds the predictions of the run whose checkpoint is {owner}, which could not go on without them. "
            "Name another file with --output; or remove one of the two, if that run is not to go on."
        )


def claim(path: Path | None, checkpoint: Path | None) -> None:
    """Note which checkpoint a file of predictions belongs to, or that it belongs to none."""
    if path is None:
        return
    if checkpoint is None:
        _owner(path).unlink(missing_ok=True)
    else:
        name = os.fsencode(checkpoint.resolve())

        def write(file: BinaryIO) -> None:
            file.write(name)

        write_atomically(_owner(path), write)


def _owner(path: Path) -> Path:
    return path.with_name(f".{path.name}.owner")


def _check_beginning(path: Path, num_bytes: int, checksum: int) -> int:
    """Compare the beginning of a file with what was written; returns its checksum."""
    size = path.stat().st_size if path.is_file() else 0
    if size < num_bytes:
        raise FileFormatError(
            f"{path} has {size} bytes, but the checkpoint was written when it had {num_bytes}. Put the predictions "
            "back, name the file that holds them with --output, or start again with --fresh."
        )
    found, left = 0, num_bytes
    with path.open("rb") as file:
        while left and (content := file.read(min(_CHUNK, left))):
            found, left = zlib.crc32(content, found), left - len(content)
    if found != checksum:
        raise FileFormatError(
            f"{path} does not begin with the predictions that the checkpoint belongs to; it was changed or "
            "replaced. Put them back, name the file that holds them with --output, or start again with --fresh."
        )
    return found


def _open(path: Path, num_bytes: int) -> BinaryIO:
    try:
        file = path.open("r+b" if path.is_file() else "w+b")
        file.truncate(num_bytes)
        file.seek(num_bytes)
    except OSError as error:
        raise OptionError(f"{path} cannot be written ({error.strerror}). Choose another --output.") from error
    return file
