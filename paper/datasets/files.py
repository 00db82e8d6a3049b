"""Where the files of data sets are, and how they get there.

A file is looked for in the mirror that `STREAMGP_DATA_DIR` names, then in the cache, into which it is fetched if need
be.
"""

import hashlib
import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal, Protocol, final, runtime_checkable

from paper.datasets.registry import registered_file
from paper.datasets.sources import DataFile
from streamgp.errors import DatasetError

__all__ = ["VARIABLE", "Location", "ProgressBar", "check_location", "find_file", "locate"]

VARIABLE = "STREAMGP_DATA_DIR"


@runtime_checkable
class ProgressBar(Protocol):
    """What pooch calls while it fetches."""

    total: float

    def update(self, num_bytes: int) -> object:
        """More bytes have come."""

    def reset(self) -> object:
        """Start again at zero."""

    def close(self) -> object:
        """All has come."""


@final
@dataclass(frozen=True)
class Location:
    """Where a file was found.

    Attributes:
        path: The file.
        place: `"mirror"` or `"cache"`.
        sha256: The checksum that it should have.
    """

    path: Path
    place: Literal["mirror", "cache"]
    sha256: str


def find_file(name: str, *, progress: ProgressBar | None = None) -> Path:
    """Find a file of a data set, and fetch it if it is not here.

    Args:
        name: Its name in the registry, for example `"banana/banana_train_x.txt"`.
        progress: A bar that follows the fetching.

    Returns:
        The file, with the right checksum. One that a mirror stores compressed may have been fetched unpacked.

    Raises:
        DatasetError: If it can neither be found nor fetched, or if it is damaged.
    """
    file, dataset = registered_file(name)
    location = locate(file)
    if location is not None and (location.place == "mirror" or not file.is_fetchable):
        return check_location(location)
    if not file.is_fetchable:
        raise DatasetError(
            f"{name} of the data set {dataset.name!r} is not here, and cannot be fetched, as it is derived from "
            f"{file.address} ({file.derivation}). {_advice()}"
        )
    return _fetch(file, dataset.name, progress)


def locate(file: DataFile) -> Location | None:
    """Where a file is, without fetching it and without a look at its content; None if it is not here."""
    mirror, cache = _mirror(), _cache()
    for name, sha256 in file.forms:
        if mirror is not None and (mirror / name).is_file():
            return Location(mirror / name, "mirror", sha256)
    name, sha256 = file.forms[-1]
    if cache is not None and (cache / name).is_file():
        return Location(cache / name, "cache", sha256)
    return None


def check_location(location: Location) -> Path:
    """The file at a location, if it has the checksum that it should have."""
    with location.path.open("rb") as opened:
        sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
    if sha256 != location.sha256:
        raise DatasetError(
            f"{location.path} must have the SHA-256 {location.sha256}, but has {sha256}: it is damaged, or another "
            f"version. Replace it, or delete it from the {location.place} so that it is looked for elsewhere."
        )
    return location.path


def _fetch(file: DataFile, dataset_name: str, progress: ProgressBar | None) -> Path:
    """Fetch a file into the cache, unless it is there; pooch compares the checksum either way."""
    pooch = _pooch()
    if pooch is None:
        raise DatasetError(
            f"{file.name} of the data set {dataset_name!r} is not here, and pooch, which fetches it, is not "
            f"installed. Install it, in the checkout, with pip install --group paper. {_advice()}"
        )
    name, sha256 = file.forms[-1]
    try:
        path = pooch.retrieve(
            file.address,
            known_hash=f"sha256:{sha256}",
            fname=name,
            path=pooch.os_cache("streamgp"),
            downloader=pooch.HTTPDownloader(progressbar=progress),
        )
    except (OSError, ValueError) as error:  # the errors of requests are OSErrors, a wrong checksum is a ValueError
        raise DatasetError(
            f"{file.name} of the data set {dataset_name!r} could not be fetched from {file.address}: "
            f"{str(error).rstrip('.')}. {_advice()}"
        ) from error
    return Path(path)


def _advice() -> str:
    mirror = _mirror()
    state = "which is not set" if mirror is None else f"which is {str(mirror)!r} and does not hold the file"
    return f"If there is a copy, point the variable {VARIABLE}, {state}, at its directory (docs/experiments.md)."


def _mirror() -> Path | None:
    directory = os.environ.get(VARIABLE)
    return Path(directory).expanduser() if directory else None


def _cache() -> Path | None:
    pooch = _pooch()
    return None if pooch is None else Path(pooch.os_cache("streamgp"))


def _pooch() -> ModuleType | None:
    """The library of the extra `paper`, if it is installed."""
    try:
        return import_module("pooch")
    except ImportError:
        return None
