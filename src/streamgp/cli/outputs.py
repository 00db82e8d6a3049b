"""Files that commands write: where they may go, all together or not at all."""

import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from streamgp.errors import OptionError
from streamgp.storage.writing import mode_of, sync_directory

__all__ = ["check_output_paths", "remove_unfinished", "write_together"]

# End of the names of directories in which files are written before they are renamed.
_UNFINISHED = ".part"


def check_output_paths(written: Mapping[str, Path | None], source: str) -> None:
    """Refuse places that cannot be written, and names that would overwrite each other or the source.

    Args:
        written: Files by the option that names them; None for those that are not wanted.
        source: What is read; `-` for standard input.
    """
    taken = {} if source == "-" else {Path(source).resolve(): "the source"}
    for option, path in written.items():
        if path is None:
            continue
        if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise OptionError(f"{option} {path}: the directory does not exist or cannot be written. Choose another.")
        if path.is_dir():
            raise OptionError(f"{option} {path} is a directory. Add a file name.")
        if path.resolve() in taken:
            raise OptionError(f"{option} {path} is also {taken[path.resolve()]}. Choose another name.")
        taken[path.resolve()] = option


def write_together(writers: Mapping[Path, Callable[[Path], None]]) -> None:
    """Write files under temporary names, and rename them once all are complete and on the disk.

    Existing files keep their mode, and symbolic links are followed.

    Args:
        writers: What writes a file, by where it goes.
    """
    with ExitStack() as stack:
        finished: list[tuple[Path, Path]] = []
        for path, write in writers.items():
            target = Path(os.path.realpath(path))  # a symbolic link stays one
            mode = mode_of(target)
            part = tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-", suffix=_UNFINISHED)
            temporary = Path(stack.enter_context(part)) / target.name
            write(temporary)
            if mode is not None:
                temporary.chmod(mode)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            finished.append((temporary, target))
        for temporary, target in finished:
            temporary.replace(target)
        for directory in {target.parent for _, target in finished}:
            sync_directory(directory)


def remove_unfinished(path: Path) -> None:
    """Remove what commands left that were killed while they wrote a file; call it under a lock that all of them take.

    Args:
        path: The file.
    """
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(f".{glob.escape(target.name)}-*{_UNFINISHED}"):
        shutil.rmtree(left, ignore_errors=True)
