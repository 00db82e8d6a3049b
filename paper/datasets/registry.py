"""The data sets, with the addresses and checksums of their files, from `registry.toml`."""

import tomllib
from pathlib import Path

from paper.datasets.sources import DataFile, DataSet
from streamgp.checks import check_choice

__all__ = ["DATASETS", "find_dataset", "registered_file"]


def _read() -> tuple[DataSet, ...]:
    content = tomllib.loads(Path(__file__).with_name("registry.toml").read_text(encoding="utf-8"))
    return tuple(
        DataSet(**{**one, "files": tuple(DataFile(**file) for file in one["files"])}) for one in content["dataset"]
    )


DATASETS = _read()


def find_dataset(name: str) -> DataSet:
    """The data set of a name."""
    by_name = {dataset.name: dataset for dataset in DATASETS}
    return by_name[check_choice(name, tuple(by_name), "name")]


def registered_file(name: str) -> tuple[DataFile, DataSet]:
    """The file of a name, and the data set that it belongs to."""
    by_name = {file.name: (file, dataset) for dataset in DATASETS for file in dataset.files}
    return by_name[check_choice(name, tuple(by_name), "name")]
