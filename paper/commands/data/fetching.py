"""What `python -m paper data fetch` does, with a bar for each file that comes over the network."""

from collections.abc import Sequence
from typing import final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from paper.datasets import DATASETS, DataSet, find_dataset, find_file, locate
from streamgp.errors import DatasetError

__all__ = ["fetch_datasets"]


def fetch_datasets(names: Sequence[str], console: Console) -> bool:
    """Fetch data sets, and print where each file is or why it could not be fetched.

    Args:
        names: Names of data sets, or `"all"` for whatever can be fetched.
        console: Where to print.

    Returns:
        Whether everything that was asked for is here.
    """
    is_all = "all" in names
    datasets = DATASETS if is_all else tuple(find_dataset(name) for name in names)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    is_complete = True
    with Progress(*columns, console=console, transient=True) as bars:
        for dataset in datasets:
            is_excused = is_all and _is_out_of_reach(dataset)
            is_complete &= _fetch(dataset, bars) or is_excused
    return is_complete


def _is_out_of_reach(dataset: DataSet) -> bool:
    return any(not file.is_fetchable and locate(file) is None for file in dataset.files)


def _fetch(dataset: DataSet, bars: Progress) -> bool:
    """Fetch the files of a data set until one fails."""
    for file in dataset.files:
        try:
            path = find_file(file.name, progress=_FileBar(bars, file.name))
        except DatasetError as error:
            bars.console.print(escape(str(error)), style="red", soft_wrap=True)
            return False
        bars.console.print(escape(str(path)), soft_wrap=True)
    return True


@final
class _FileBar:
    """One of rich's bars, as pooch calls it; it appears when the size of the file is known."""

    def __init__(self, bars: Progress, description: str) -> None:
        self._bars = bars
        self._description = description
        self._task: TaskID | None = None
        self._total = 0.0

    @property
    def total(self) -> float:
        return self._total

    @total.setter
    def total(self, total: float) -> None:
        self._total = total
        self._task = self._bars.add_task(self._description, total=total or None)

    def update(self, num_bytes: int) -> None:
        if self._task is not None:
            self._bars.advance(self._task, num_bytes)

    def reset(self) -> None:
        if self._task is not None:
            self._bars.reset(self._task)

    def close(self) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
