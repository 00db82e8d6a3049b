"""One command at a time on one file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from streamgp.errors import SaveError

__all__ = ["locked"]


@contextmanager
def locked(path: Path, *, patience: float) -> Iterator[None]:
    """Keep other commands from a file, by a lock beside it that ends with the process.

    Args:
        path: The file.
        patience: Seconds to wait for another command.

    Raises:
        SaveError: If another command is at work on the file for longer, or the lock cannot be written.
    """
    beside = path.with_name(f".{path.name}.lock")
    lock = FileLock(beside, timeout=patience)
    try:
        lock.acquire()
    except Timeout:
        raise SaveError(
            f"Another command is at work on {path}. Wait until it has ended and try again, or name another file."
        ) from None
    except OSError as error:
        raise SaveError(
            f"The lock {beside} cannot be written ({error.strerror or error}). Check its mode and that of its "
            "directory, or name another file."
        ) from error
    try:
        yield
    finally:
        lock.release()
