"""What is known of a file and of a data set before either is here."""

from dataclasses import dataclass
from typing import final

__all__ = ["DataFile", "DataSet"]


@final
@dataclass(frozen=True)
class DataFile:
    """A file: what it is, where it comes from, and the checksum by which it is known.

    Attributes:
        name: Its path inside a mirror or the cache.
        content: What it holds.
        address: The file of a public repository that it comes from, at a fixed commit.
        sha256: Checksum of the file as a mirror stores it.
        derivation: How it was made from the file at `address`; None if it has the same bytes, compressed or not.
        unpacked_sha256: Checksum of the file at `address`, where a mirror stores it compressed by gzip.
    """

    name: str
    content: str
    address: str
    sha256: str
    derivation: str | None = None
    unpacked_sha256: str | None = None

    @property
    def is_fetchable(self) -> bool:
        """Whether its address gives its content."""
        return self.derivation is None

    @property
    def forms(self) -> tuple[tuple[str, str], ...]:
        """Names and checksums under which it may be stored; the last is what its address gives."""
        stored = (self.name, self.sha256)
        if self.unpacked_sha256 is None:
            return (stored,)
        return stored, (self.name.removesuffix(".gz"), self.unpacked_sha256)


@final
@dataclass(frozen=True)
class DataSet:
    """Files that belong together.

    Attributes:
        name: Its name.
        content: What it is.
        rows: Number of rows, in words where there are several parts.
        license: Under which terms it may be used, as far as they are stated.
        home: Where the data was published first; empty if that is its repository.
        files: The files.
    """

    name: str
    content: str
    rows: str
    license: str
    home: str
    files: tuple[DataFile, ...]

    @property
    def is_fetchable(self) -> bool:
        """Whether all its files can be fetched."""
        return all(file.is_fetchable for file in self.files)
