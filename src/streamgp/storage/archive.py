"""Files without pickle: arrays and a JSON description in one archive, read within bounds."""

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, final

import numpy as np
import torch
from torch import Tensor

from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.storage.writing import write_atomically

__all__ = ["ArchiveReader", "is_finite", "write_archive"]

_DESCRIPTION = "description.json"
# Bounds on what is read, so that it takes at most twice the memory that the file has bytes, and 32 MB: once for the
# arrays, and half as much each for what is made of the description and of the list of parts.
_LONGEST_DESCRIPTION = 8_000_000
_FREE_MEMORY = 32_000_000
_SHARE_OF_DESCRIPTION = 0.5
# What Python makes of an entry of 46 bytes and more takes up to some sixteen times that.
_SHARE_OF_ENTRIES = 1 / 32
_FREE_ENTRIES = 256_000
_LONGEST_HEADER = 10_000
_CHUNK = 1 << 20
_KINDS = "fiubcU"
# Numbers whose finiteness is checked at once; more would take more memory while a file is read.
_NUM_AT_ONCE = 1 << 16


def write_archive(
    path: str | os.PathLike[str], description: Mapping[str, Any], arrays: Mapping[str, Tensor | np.ndarray]
) -> None:
    """Write a file, whole or not at all. The same contents give the same bytes.

    Matrices keep their order in memory, by rows or by columns, on which the last bits of products depend.

    Args:
        path: The file.
        description: A mapping that JSON can hold, with the names `"format"` and `"version"`.
        arrays: Tensors and arrays of numbers, truths or texts, by name.
    """
    text = json.dumps({**description, "tensors": sorted(arrays)}, indent=1, allow_nan=False).encode()
    contents = {name: _to_numpy(name, value) for name, value in arrays.items()}
    size = len(text) + sum(value.nbytes for value in contents.values())
    if _is_too_long(text, size):
        raise UnsupportedError(
            f"What is to be saved takes {len(text):,} bytes beside its {size - len(text):,} of tensors, more than "
            "would be read back. Keep long lists of numbers in tensors or arrays."
        )

    def write(file: BinaryIO) -> None:
        # Not compressed, as digits of numbers are random; the checksums of the parts are what the format is for.
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(zipfile.ZipInfo(_DESCRIPTION), text)
            for name, value in contents.items():
                part = io.BytesIO()
                np.save(part, value, allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue())

    write_atomically(path, write)


def _is_too_long(text: bytes, size: int) -> bool:
    """Say whether a description might take more memory than a file of a size is allowed.

    Counted are, with their places in lists and what is decoded from them, objects and lists (300 bytes), texts (80) and
    other values (48), and the text itself: its bytes, its characters and those of the texts in it, of up to four bytes.
    """
    containers, values, quotes = text.count(b"{") + text.count(b"["), text.count(b","), text.count(b'"')
    memory = 300 * containers + 48 * values + 16 * quotes + (3 if text.isascii() else 9) * len(text)
    return len(text) > _LONGEST_DESCRIPTION or memory > _FREE_MEMORY + _SHARE_OF_DESCRIPTION * size


def _to_numpy(name: str, value: Tensor | np.ndarray) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    try:
        return value.detach().cpu().numpy()
    except (TypeError, RuntimeError) as error:
        raise UnsupportedError(
            f"The tensor {name} of type {value.dtype} and layout {value.layout} cannot be saved ({error}). Convert it "
            "to a dense tensor of float32 or float64."
        ) from error


@final
class ArchiveReader:
    """Open archive: its description, and arrays that are read one by one, each once.

    No more is read than the file holds: parts must not be compressed, overlap, or declare more than they have.
    """

    description: dict[str, Any]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a file and read its description; use the object as a context.

        Raises:
            FileFormatError: If there is no such file, or it is damaged.
        """
        self.path = Path(path)
        if not _is_file(self.path):
            raise FileFormatError(f"There is no file {path}. Check the path; it is the one that was given to save.")
        with ExitStack() as opened:
            try:
                size = self.path.stat().st_size
                file = opened.enter_context(_BoundedFile(self.path, _FREE_ENTRIES + int(_SHARE_OF_ENTRIES * size)))
                self._archive = opened.enter_context(zipfile.ZipFile(file))
                file.longest = _LONGEST_DESCRIPTION
                self._parts = self._checked_parts(size)
                self.description = self._read_description(size)
            except FileFormatError:
                raise
            except Exception as error:  # whatever a damaged zip raises, it means one thing to the user
                raise self.damaged(error) from error
            self._opened = opened.pop_all()

    def __enter__(self) -> "ArchiveReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def damaged(self, error: BaseException | str) -> FileFormatError:
        """Return an error that says that the file is damaged."""
        what = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        return FileFormatError(
            f"{self.path} is damaged or was not written by streamgp ({what}). Copy it again from where it was saved, "
            "or use an earlier copy."
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays that were not read yet."""
        return tuple(self._parts)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Shape of an array, without reading it."""
        with self._open(name) as part:
            return _read_header(part)[0]

    def take_array(self, name: str) -> np.ndarray:
        """Read an array of numbers, truths or texts; it cannot be read again.

        Raises:
            FileFormatError: If it is missing or damaged.
        """
        with self._open(name) as part:
            try:
                shape, is_by_columns, dtype = _read_header(part)
                size = self._parts[name].file_size - part.tell()
                if size != math.prod(shape) * dtype.itemsize:
                    raise ValueError(f"{name} declares {shape} values of {dtype}, but holds {size} bytes")
                values = _allocate(shape[::-1] if is_by_columns else shape, dtype)
                _fill(part, values)
            except Exception as error:
                raise (error if isinstance(error, FileFormatError) else self.damaged(error)) from error
        del self._parts[name]
        return values.T if is_by_columns else values

    def take(self, name: str) -> Tensor:
        """Read a tensor, onto the CPU; it cannot be read again."""
        array = self.take_array(name)
        try:
            tensor = torch.from_numpy(array)
            return tensor if tensor.numel() else torch.empty(array.shape, dtype=tensor.dtype)  # with usual strides
        except TypeError as error:
            raise self.damaged(error) from error

    def _open(self, name: str) -> Any:
        if name not in self._parts:
            raise self.damaged(f"it has no tensor {name!r}, or names it twice")
        try:
            return self._archive.open(self._parts[name])
        except Exception as error:
            raise self.damaged(error) from error

    def _read_description(self, size: int) -> dict[str, Any]:
        text = self._archive.read(_DESCRIPTION)
        if _is_too_long(text, size):
            raise ValueError("its description is too long")
        description = json.loads(text)
        if not isinstance(description, dict):
            raise ValueError("its description is not an object")
        if description.get("tensors") != sorted(self._parts):
            raise ValueError("it does not hold the tensors that its description names")
        return description

    def _checked_parts(self, size: int) -> dict[str, zipfile.ZipInfo]:
        parts, total, names = {}, 0, set()
        for info in self._archive.infolist():
            if info.filename in names:
                raise self.damaged(f"its part {info.filename!r} is there twice")
            names.add(info.filename)
            total += info.file_size
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise self.damaged(f"its part {info.filename!r} is compressed")
            if info.filename == _DESCRIPTION and info.file_size > _LONGEST_DESCRIPTION:
                raise self.damaged(f"its description has {info.file_size:,} bytes")
            if info.filename.endswith(".npy"):
                parts[info.filename.removesuffix(".npy")] = info
        if total > size:
            raise self.damaged("its parts overlap")
        return parts


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a null byte in the path
        return False


class _BoundedFile(io.FileIO):
    """File that refuses to read more bytes at once than a bound; a zip file reads its list of parts at once."""

    def __init__(self, path: Path, longest: int) -> None:
        super().__init__(path)
        self.longest = longest

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self.longest:
            raise ValueError(f"{size:,} bytes of one part or of the list of parts are too many")
        return super().read(size)


def _read_header(part: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array in NumPy's format, within bounds."""
    is_short = np.lib.format.read_magic(part) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if is_short else np.lib.format.read_array_header_2_0
    shape, is_by_columns, dtype = read(part, max_header_size=_LONGEST_HEADER)
    if dtype.kind not in _KINDS or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(f"an array has shape {shape} and type {dtype}")
    return shape, is_by_columns, dtype


def _allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Memory that torch aligns, as the last bits of products may depend on that, too."""
    if dtype.kind == "U" or not dtype.isnative:
        return np.empty(shape, dtype)
    like = torch.from_numpy(np.empty((), dtype))
    return torch.empty(shape, dtype=like.dtype).numpy()


def _fill(part: Any, values: np.ndarray) -> None:
    """Read chunk by chunk into memory that is there; the checksum is compared at the end."""
    flat = values.reshape(-1).view(np.uint8) if values.size else np.empty(0, np.uint8)
    position = 0
    while chunk := part.read(_CHUNK):
        flat[position : position + len(chunk)] = np.frombuffer(chunk, np.uint8)
        position += len(chunk)
    if position != len(flat):
        raise ValueError("an array ends early")


def is_finite(value: Tensor) -> bool:
    """Say whether no number is NaN or infinite, without a copy of them all."""
    if value.numel() <= _NUM_AT_ONCE:
        return bool(torch.isfinite(value).all())
    axis = max(range(value.dim()), key=lambda i: value.shape[i])
    size = max(1, _NUM_AT_ONCE * value.shape[axis] // value.numel())
    return all(bool(torch.isfinite(part).all()) for part in value.split(size, axis))
