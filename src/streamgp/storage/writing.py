"""Files that are written whole or not at all."""

import os
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from streamgp.errors import SaveError

__all__ = ["mode_of", "sync_directory", "write_atomically"]

_SUFFIX = ".streamgp-tmp"
# A temporary file this old, in seconds, of a process that is gone, was left by one that was killed.
_LEFTOVER_AGE = 60.0
# Of the names of files, which systems end at 255 bytes.
_LONGEST_PREFIX = 80


def write_atomically(path: str | os.PathLike[str], write: Callable[[BinaryIO], None]) -> None:
    """Write a file: first under a temporary name beside it, then renamed, so that no half file remains.

    When the function returns, the file is on the disk, and a loss of power does not undo it. A symbolic link is
    followed. An existing file keeps its mode; that of a new one follows the umask. Temporary files that a killed
    process left are removed when the same file is written again.

    Args:
        path: The file.
        write: Writes the contents.

    Raises:
        SaveError: If the system refuses, or the path is a directory or a device. An existing file stays as it was.
    """
    try:
        target = Path(os.path.realpath(path, strict=False))
        mode = mode_of(target)
        _remove_leftovers(target)
        _write_and_rename(target, write, mode)
    except OSError as error:
        if isinstance(error, SaveError):
            raise
        raise SaveError(
            f"{os.fspath(path)} could not be written: {error.strerror or error}. Check that its directory exists, may "
            "be written to and has room."
        ) from error
    except ValueError as error:  # a null byte in the path
        raise SaveError(f"{os.fspath(path)!r} is not the name of a file: {error}.") from error


def mode_of(target: Path) -> int | None:
    """Return the mode of an existing regular file; None where there is none."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode):
        return stat.S_IMODE(mode)
    kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file but a device, a pipe or a socket"
    raise SaveError(f"{target} is {kind}, and would be replaced. Pass the path of a file.")


def _write_and_rename(target: Path, write: Callable[[BinaryIO], None], mode: int | None) -> None:
    temporary = target.with_name(f"{_prefix(target)}{os.getpid()}.{secrets.token_hex(4)}{_SUFFIX}")
    try:
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666), "w+b") as file:
            if mode is not None:
                temporary.chmod(mode)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def _prefix(target: Path) -> str:
    return f".{target.name[:_LONGEST_PREFIX]}."


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of processes that were killed while they wrote the same file."""
    prefix = _prefix(target)
    with suppress(OSError):
        for leftover in target.parent.iterdir():
            if not (leftover.name.startswith(prefix) and leftover.name.endswith(_SUFFIX)):
                continue
            owner = leftover.name.removeprefix(prefix).split(".")[0]
            if owner.isdigit() and not _is_alive(int(owner)):
                with suppress(OSError):
                    if time.time() - leftover.stat().st_mtime > _LEFTOVER_AGE:
                        leftover.unlink()


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where a signal of number 0 would end it
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def sync_directory(directory: Path) -> None:
    """Bring a rename to the disk; where directories cannot be opened, as on Windows, the system does so by itself."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
