"""The file of predictions, as JSON lines; it can be cut back to where a checkpoint was."""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, final

from streamgp.errors import FileFormatError, OptionError

__all__ = ["PredictionFile"]


@final
class PredictionFile:
    """Where predictions are written: a file, or standard output."""

    def __init__(self, path: Path | None, num_bytes: int) -> None:
        """Open a file and cut it to what is known to be right.

        Args:
            path: The file, or None for standard output.
            num_bytes: Length of what stays; 0 to start anew.
        """
        self._path = path
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
        return len(content)

    def sync(self, num_bytes: int) -> None:
        """Bring everything to the disk, without lines after the first `num_bytes` bytes."""
        if self._path is not None:
            self._file.truncate(num_bytes)
            self._file.seek(num_bytes)
            os.fsync(self._file.fileno())


def _open(path: Path, num_bytes: int) -> BinaryIO:
    size = path.stat().st_size if path.is_file() else 0
    if size < num_bytes:
        raise FileFormatError(
            f"{path} has {size} bytes, but the checkpoint was written when it had {num_bytes}. Put the predictions "
            "back, name the file that holds them with --output, or start again with --fresh."
        )
    try:
        file = path.open("r+b" if path.is_file() else "w+b")
        file.truncate(num_bytes)
        file.seek(num_bytes)
    except OSError as error:
        raise OptionError(f"{path} cannot be written ({error.strerror}). Choose another --output.") from error
    return file
