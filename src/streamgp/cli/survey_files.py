"""The files of a survey, written all together or not at all."""

import csv
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

__all__ = ["write_table", "write_together"]


def write_together(writers: Mapping[Path, Callable[[Path], None]]) -> None:
    """Write files under temporary names, and rename them once all are complete.

    Args:
        writers: What writes a file, by where it goes.
    """
    with ExitStack() as stack:
        finished: list[tuple[Path, Path]] = []
        for path, write in writers.items():
            directory = tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-")
            temporary = Path(stack.enter_context(directory)) / path.name
            write(temporary)
            finished.append((temporary, path))
        for temporary, path in finished:
            temporary.replace(path)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)
