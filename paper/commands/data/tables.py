"""What `python -m paper data list` and `python -m paper data check` print."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from paper.datasets import DATASETS, DataSet, check_location, locate
from streamgp.errors import DatasetError

__all__ = ["print_check", "print_datasets"]


def print_datasets(console: Console) -> None:
    """Print a table of the data sets, and which of their files cannot be fetched, and why."""
    table = Table(title="Data sets")
    for column in ("name", "what it is", "rows", "license", "where"):
        table.add_column(column, overflow="fold")
    for dataset in DATASETS:
        name = dataset.name if dataset.is_fetchable else f"{dataset.name} *"
        table.add_row(name, dataset.content, dataset.rows, dataset.license, _place(dataset))
    console.print(table)
    console.print("* Cannot be fetched, as no address gives these files: point STREAMGP_DATA_DIR at a copy.")
    for dataset in DATASETS:
        for file in dataset.files:
            if file.derivation is not None:
                console.print(f"  {file.name}: {escape(file.derivation)}; from {file.address}", soft_wrap=True)


def print_check(console: Console) -> bool:
    """Compare the checksums of all files that are here, and say which are damaged.

    Returns:
        Whether none is.
    """
    num_whole = num_missing = 0
    complaints = []
    for file in (file for dataset in DATASETS for file in dataset.files):
        location = locate(file)
        if location is None:
            num_missing += 1
            continue
        try:
            check_location(location)
        except DatasetError as error:
            complaints.append(str(error))
        else:
            num_whole += 1
    for issue in complaints:
        console.print(escape(issue), style="red", soft_wrap=True)
    console.print(f"{num_whole} files are whole, {len(complaints)} are damaged, {num_missing} are not here.")
    return not complaints


def _place(dataset: DataSet) -> str:
    """Where the files of a data set are, in words."""
    locations = [locate(file) for file in dataset.files]
    names = ["not here" if location is None else location.place for location in locations]
    if len(set(names)) == 1:
        return names[0]
    return ", ".join(f"{names.count(each)} {each}" for each in ("mirror", "cache", "not here") if each in names)
