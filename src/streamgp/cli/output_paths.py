"""Where a command may write."""

import os
from collections.abc import Mapping
from pathlib import Path

from streamgp.errors import OptionError

__all__ = ["check_output_paths"]


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
