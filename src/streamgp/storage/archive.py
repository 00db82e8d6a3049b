"""Files without pickle: arrays and a JSON description in one archive, read within bounds."""

import ast
import io
import json
import math
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, final

import numpy as np
import torch
from torch import Tensor

from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.storage.writing import write_atomically

__all__ = ["ArchiveReader", "write_archive"]

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
_MOST_AXES = 32
_CHUNK = 1 << 20
_KINDS = "fiubcU"


def write_archive(
    path: str | os.PathLike[str], description: Mapping[str, Any], arrays: Mapping[str, Tensor | np.ndarray]
) -> None:
    """Write a file, whole or not at all. The same contents give the same bytes.

    Matrices keep their order in memory, by rows or by columns, on which the last bits of products depend.

    Args:
        path: The file.
        description: What JSON can hold, with the names `"format"` and `"version"`.
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
    """Whether a description might take more memory than a file of a size is allowed.

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
    """An open archive: its description, and arrays that are read one by one, each once.

    No more is read than the file holds: parts must not be compressed, overlap, or declare more than they have.
    """

    description: dict[str, Any]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a file and read its description; use the object as a context.

        Raises:
            FileFormatError: If there is no such file, or it is damaged.
        """
        self.path = Path(path)
        try:
            is_file = self.path.is_file()
        except (OSError, ValueError):
            is_file = False
        if not is_file:
            raise FileFormatError(f"There is no file {path}. Check the path; it is the one that was given to save.")
        try:
            size = self.path.stat().st_size
            self._file = _BoundedFile(self.path, _FREE_ENTRIES + int(_SHARE_OF_ENTRIES * size))
        except OSError as error:
            raise self.damaged(error) from error
        try:
            self._archive = zipfile.ZipFile(self._file)
        except Exception as error:  # whatever a damaged zip raises, it means one thing to the user
            self._file.close()
            raise self.damaged(error) from error
        self._file.longest = _LONGEST_DESCRIPTION
        try:
            self._parts = self._checked_parts(size)
            text = self._archive.read(_DESCRIPTION)
            if _is_too_long(text, size):
                raise ValueError("its description is too long")
            self.description = json.loads(text)
            if not isinstance(self.description, dict):
                raise ValueError("its description is not an object")
            if self.description.get("tensors") != sorted(self._parts):
                raise ValueError("it does not hold the tensors that its description names")
        except Exception as error:
            self._close()
            raise (error if isinstance(error, FileFormatError) else self.damaged(error)) from error

    def _close(self) -> None:
        self._archive.close()
        self._file.close()

    def __enter__(self) -> "ArchiveReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def damaged(self, error: BaseException | str) -> FileFormatError:
        """The error that says that the file is damaged."""
        what = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        return FileFormatError(f"{self.path} is damaged or was not written by streamgp ({what}). Save it again.")

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

    def _checked_parts(self, size: int) -> dict[str, zipfile.ZipInfo]:
        parts, total = {}, 0
        for info in self._archive.infolist():
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


class _BoundedFile(io.FileIO):
    """A file of which no more than so many bytes are read at once: a zip file's list of parts is, for one."""

    def __init__(self, path: Path, longest: int) -> None:
        super().__init__(path)
        self.longest = longest

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self.longest:
            raise ValueError(f"{size:,} bytes of one part or of the list of parts are too many")
        return super().read(size)


def _read_header(part: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array in NumPy's format, within bounds."""
    start = part.read(8)
    if start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
        raise ValueError("a part is not an array")
    length = struct.unpack("<H", part.read(2))[0] if start[6] == 1 else struct.unpack("<I", part.read(4))[0]
    if length > _LONGEST_HEADER:
        raise ValueError("the header of an array is too long")
    header = ast.literal_eval(part.read(length).decode("latin1" if start[6] < 3 else "utf8"))
    shape, dtype = header["shape"], np.dtype(header["descr"])
    is_shape = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
    if not is_shape or len(shape) > _MOST_AXES or dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise ValueError(f"an array has shape {shape} and type {dtype}")
    return shape, header["fortran_order"] is True, dtype


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
