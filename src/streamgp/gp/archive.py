"""Files without pickle: tensors and a JSON description in one archive."""

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamgp.errors import FileFormatError, StreamGPError

__all__ = ["parts_of", "read_archive", "write_archive"]


def write_archive(path: str | os.PathLike[str], description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a file: first under a temporary name, then renamed, so that no half file remains.

    When the function returns, the file is on the disk, and a loss of power does not undo it. The same contents give
    the same bytes. Matrices keep their order in memory, by rows or by columns, on which the last bits of products
    depend.

    Args:
        path: The file.
        description: What JSON can hold, with the names `"format"` and `"version"`.
        tensors: By name.
    """
    parts = {"description.json": json.dumps({**description, "tensors": sorted(tensors)}, indent=1).encode()}
    for name, tensor in tensors.items():
        part = io.BytesIO()
        np.save(part, tensor.detach().cpu().numpy(), allow_pickle=False)
        parts[f"{name}.npy"] = part.getvalue()
    buffer = io.BytesIO()
    # Not compressed, as digits of numbers are random; the checksums of the parts are what the format is for.
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    _write_atomically(Path(path), buffer.getvalue())


def read_archive(
    path: str | os.PathLike[str], *, format: str, version: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what `write_archive` wrote.

    Args:
        path: The file.
        format: What the file must hold, by the name in its description.
        version: Version of that format.

    Returns:
        The description, and the tensors by name, on the CPU.

    Raises:
        FileFormatError: If there is no such file, or it is damaged, or holds something else.
    """
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"There is no file {path}. Check the path; it is the one that was given to save.")
    try:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.read("description.json"))
            _check_format(path, description, format, version)
            tensors = {name: _read_tensor(archive, name) for name in description["tensors"]}
    except FileFormatError:
        raise
    except Exception as error:  # whatever a damaged zip, JSON or array raises, it means one thing to the user
        raise FileFormatError(
            f"{path} is damaged or was not written by streamgp ({type(error).__name__}: {error}). Save the model again."
        ) from error
    return description, tensors


@contextmanager
def parts_of(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Where the parts of an archive are put together: a missing or ill-formed one is an error that names the file.

    Args:
        path: The file.
        what: What it should hold, for example `"an optimizer"`.
    """
    try:
        yield
    except StreamGPError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise FileFormatError(
            f"{path} lacks a part of {what} ({type(error).__name__}: {error}). The file is damaged; save it again."
        ) from error


def _read_tensor(archive: zipfile.ZipFile, name: str) -> Tensor:
    array = np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
    # In memory that torch aligns: the last bits of products may depend on that, too.
    return torch.from_numpy(array).clone()


def _check_format(path: Path, description: dict[str, Any], format: str, version: int) -> None:
    if description.get("format") != format:
        raise FileFormatError(f"{path} does not hold a {format}, but {description.get('format')!r}.")
    if description.get("version") != version:
        raise FileFormatError(
            f"{path} has format version {description.get('version')!r}, but this version of streamgp reads {version}. "
            "Load it with the version that wrote it, or upgrade streamgp."
        )


def _write_atomically(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """Bring a rename to the disk; where directories cannot be opened, as on Windows, the system does so by itself."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
