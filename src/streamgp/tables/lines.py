"""Lines of a file or of standard input, compressed or not, with a checksum of all that was read."""

import gzip
import io
import os
import sys
import time
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, final

from streamgp.errors import FileFormatError, OptionError

__all__ = ["Lines", "Position"]

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Seconds between two looks at a file that is followed; if larger, its rows are predicted later.
_PAUSE = 0.1


class Position(NamedTuple):
    """Place up to which a source has been read.

    Attributes:
        num_lines: Number of lines.
        checksum: Of all their bytes; tells whether another reading sees the same.
    """

    num_lines: int = 0
    checksum: int = 0


@final
class Lines:
    """The lines of a source, as text; an iterator that knows how far it is.

    Attributes:
        name: What messages call the source.
        position: How far it has been read.
        is_ended: Whether the last line that was read has an end; the last one of a file that grows may have none yet.
    """

    def __init__(self, source: str, *, is_followed: bool = False) -> None:
        """Open a file, or standard input for `-`; what is compressed by gzip is noticed by its first bytes.

        Lines end with line feeds, or all with carriage returns, as some spreadsheets write them.

        Args:
            source: The file.
            is_followed: At the end of the file, wait for further lines and for the rest of the last one.
        """
        self.name = "standard input" if source == "-" else source
        self.position = Position()
        self.is_ended = True
        self._raw = sys.stdin.buffer if source == "-" else _open(source)
        buffered = _buffered(self._raw)
        is_compressed = buffered.peek(2)[:2] == _GZIP_MAGIC
        self._file = _buffered(gzip.GzipFile(fileobj=buffered)) if is_compressed else buffered
        if _ends_lines_with_returns(self._file):
            self._file = io.BufferedReader(_LineFeeds(self._file))
        self._is_followed = is_followed
        if is_followed and self._file is not self._raw:
            self._raw.close()
            raise OptionError(
                f"{self.name} cannot be followed: only a plain text file can, with lines that end with line feeds."
            )

    def __enter__(self) -> "Lines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> str:
        """Read a line.

        Raises:
            UnicodeDecodeError: If it is not text in UTF-8; the next one can still be read.
            FileFormatError: If the compressed data is damaged.
        """
        content = self._read()
        if not content:
            raise StopIteration
        if self.position.num_lines == 1:
            content = content.removeprefix(_BYTE_ORDER_MARK)
        return content.decode()

    def skip_to(self, position: Position) -> None:
        """Read on to where an earlier reading was.

        Raises:
            FileFormatError: If the lines until there are not the ones that were read then.
        """
        while self.position.num_lines < position.num_lines and self._read():
            pass
        if self.position != position:
            raise FileFormatError(
                f"The checkpoint was written after {position.num_lines} lines, but the first lines of {self.name} are "
                "not the ones that were read then. Pass the same stream from its beginning, or start again with "
                "--fresh."
            )

    def _read(self) -> bytes:
        try:
            content = self._file.readline()
            while self._is_followed and not content.endswith(b"\n"):
                self._wait()
                content += self._file.readline()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileFormatError(
                f"{self.name} is damaged after line {self.position.num_lines}: {error}. Get it again; rows until there "
                "have been learned."
            ) from error
        if content:
            count, checksum = self.position
            self.position = Position(count + 1, zlib.crc32(content, checksum))
            self.is_ended = content.endswith(b"\n")
        return content

    def _wait(self) -> None:
        """Let a file grow; one that has become shorter is another one."""
        time.sleep(_PAUSE)
        if os.fstat(self._raw.fileno()).st_size < self._raw.tell():
            raise FileFormatError(
                f"{self.name} has become shorter than what was read of it. Start again with the file that goes on."
            )


@final
class _LineFeeds(io.RawIOBase):
    """Bytes of another file, with line feeds in place of carriage returns."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._bytes = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._bytes.read1(len(buffer))
        buffer[: len(content)] = content.replace(b"\r", b"\n")
        return len(content)


def _ends_lines_with_returns(file: io.BufferedReader) -> bool:
    """Tell whether there are carriage returns without line feeds; the last byte may be the first half of a pair."""
    try:
        beginning = file.peek()
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return False  # reading the lines says what is wrong
    return b"\n" not in beginning and b"\r" in beginning[:-1]


def _open(source: str) -> io.BufferedReader:
    path = Path(source)
    try:
        return path.open("rb")
    except OSError as error:
        raise OptionError(
            f"{source} cannot be read ({error.strerror}). Check the path, or pass - for standard input."
        ) from error


def _buffered(raw: Any) -> io.BufferedReader:
    """Return a reader that can look ahead; standard input may be any binary stream if another program calls us."""
    return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)
